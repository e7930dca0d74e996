/*
 * A PKCS#11 library that passes all calls to another one (SoftHSM), and fails as the control file says.
 * A test double of an HSM's faults; the HSM behind it is real. Only for tests.
 *
 * Compiled with -DREAL="path of the library behind" and -DCONTROL="path of the control file". The control file
 * is read before each call that counts (see GATED):
 *
 *   pass              do what was asked
 *   answer 0x30 N     refuse the next N calls with this answer, then pass; without N, all calls
 *   login 0xA4        refuse logins with this answer
 *   slow MS           wait before each call
 *   restart           forget all sessions and logins, as an HSM that was restarted does; then pass
 *   lapse             log out where keys are listed next, so that none is seen; then pass
 *   own-nonce         encrypt with another nonce than was given, as some tokens do in FIPS mode
 *   no-slots          show no slots, as a network HSM's library does that cannot reach it
 *   no-gcm            show no mechanism CKM_AES_GCM
 *
 * The names of the calls go to CONTROL.log, one a line. Types and the order of functions are those of PKCS#11 2.40.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long ulong_t;
typedef ulong_t (*call_t)(ulong_t, ulong_t, ulong_t, ulong_t, ulong_t, ulong_t);

struct functions {
  unsigned char version[2];
  call_t call[68];
};
struct mechanism {
  ulong_t type;
  void *parameter;
  ulong_t length;
};

enum { INITIALIZE = 0, FINALIZE = 1, FUNCTION_LIST = 3, SLOT_LIST = 4, MECHANISM_LIST = 7, OPEN_SESSION = 12, LOGIN = 18, LOGOUT = 19,
       FIND_OBJECTS = 26, ENCRYPT_INIT = 29, DECRYPT_INIT = 33 };
static const ulong_t AES_GCM = 0x1087, AES_KEY_GEN = 0x1080;

static struct functions *real, ours;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void tell(const char *line, const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  if (file) {
    fprintf(file, "%s\n", line);
    fclose(file);
  }
}

/* Reads the mode, and the two numbers that may follow it. */
static void control(char mode[32], ulong_t *number, long *times) {
  char line[128] = "pass";
  FILE *file = fopen(CONTROL, "r");
  if (file) {
    if (!fgets(line, sizeof line, file)) strcpy(line, "pass");
    fclose(file);
  }
  *number = 0;
  *times = -1;
  sscanf(line, "%31s %li %ld", mode, (long *)number, times);
}

static void restart(void) {
  real->call[FINALIZE](0, 0, 0, 0, 0, 0);
  struct { void *create, *destroy, *lock, *unlock; ulong_t flags; void *reserved; } arguments = {0, 0, 0, 0, 2, 0};
  real->call[INITIALIZE]((ulong_t)&arguments, 0, 0, 0, 0, 0); /* 2: CKF_OS_LOCKING_OK */
  tell("pass", CONTROL, "w");
}

/* What to answer instead of calling; 0: call. */
static ulong_t gate(const char *name) {
  char mode[32];
  ulong_t number;
  long times;
  pthread_mutex_lock(&one_at_a_time);
  tell(name, CONTROL ".log", "a");
  control(mode, &number, &times);
  ulong_t answer = 0;
  if (!strcmp(mode, "restart")) {
    restart();
  } else if (!strcmp(mode, "login") && !strcmp(name, "C_Login")) {
    answer = number;
  } else if (!strcmp(mode, "answer") && times != 0) {
    answer = number;
    if (times > 0) {
      char left[64];
      snprintf(left, sizeof left, times > 1 ? "answer %lu %ld" : "pass", number, times - 1);
      tell(left, CONTROL, "w");
    }
  }
  pthread_mutex_unlock(&one_at_a_time);
  if (!strcmp(mode, "slow")) usleep(number * 1000);
  return answer;
}

#define GATED(name, index)                                                                       \
  static ulong_t name(ulong_t a, ulong_t b, ulong_t c, ulong_t d, ulong_t e, ulong_t f) {        \
    ulong_t answer = gate(#name);                                                                \
    return answer ? answer : real->call[index](a, b, c, d, e, f);                                \
  }
GATED(C_OpenSession, OPEN_SESSION)
GATED(C_Login, LOGIN)
GATED(C_DecryptInit, DECRYPT_INIT)

static ulong_t C_FindObjectsInit(ulong_t session, ulong_t attributes, ulong_t count, ulong_t d, ulong_t e, ulong_t f) {
  ulong_t answer = gate("C_FindObjectsInit");
  if (answer) return answer;
  char mode[32];
  ulong_t number;
  long times;
  control(mode, &number, &times);
  if (!strcmp(mode, "lapse")) {
    tell("pass", CONTROL, "w");
    real->call[LOGOUT](session, 0, 0, 0, 0, 0);
  }
  return real->call[FIND_OBJECTS](session, attributes, count, d, e, f);
}

static ulong_t C_EncryptInit(ulong_t session, ulong_t given, ulong_t key, ulong_t d, ulong_t e, ulong_t f) {
  ulong_t answer = gate("C_EncryptInit");
  if (answer) return answer;
  char mode[32];
  ulong_t number;
  long times;
  control(mode, &number, &times);
  struct mechanism *mechanism = (struct mechanism *)given;
  if (!strcmp(mode, "own-nonce") && mechanism->type == AES_GCM) {
    unsigned char *nonce = *(unsigned char **)mechanism->parameter; /* CK_GCM_PARAMS starts with pIv */
    nonce[0] ^= 1;
    answer = real->call[ENCRYPT_INIT](session, given, key, d, e, f);
    nonce[0] ^= 1;
    return answer;
  }
  return real->call[ENCRYPT_INIT](session, given, key, d, e, f);
}

static ulong_t C_GetSlotList(ulong_t present, ulong_t list, ulong_t count, ulong_t d, ulong_t e, ulong_t f) {
  char mode[32];
  ulong_t number;
  long times;
  control(mode, &number, &times);
  if (strcmp(mode, "no-slots")) return real->call[SLOT_LIST](present, list, count, d, e, f);
  *(ulong_t *)count = 0;
  return 0;
}

static ulong_t C_GetMechanismList(ulong_t slot, ulong_t list, ulong_t count, ulong_t d, ulong_t e, ulong_t f) {
  ulong_t answer = real->call[MECHANISM_LIST](slot, list, count, d, e, f);
  char mode[32];
  ulong_t number;
  long times;
  control(mode, &number, &times);
  if (!answer && list && !strcmp(mode, "no-gcm"))
    for (ulong_t i = 0; i < *(ulong_t *)count; i++)
      if (((ulong_t *)list)[i] == AES_GCM) ((ulong_t *)list)[i] = AES_KEY_GEN;
  return answer;
}

ulong_t C_GetFunctionList(struct functions **list) {
  if (!real) {
    void *library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fprintf(stderr, "hsm_faults: %s\n", dlerror());
      return 5; /* CKR_GENERAL_ERROR */
    }
    ulong_t (*get)(struct functions **) = (ulong_t(*)(struct functions **))dlsym(library, "C_GetFunctionList");
    ulong_t answer = get(&real);
    if (answer) return answer;
    memcpy(&ours, real, sizeof ours);
    ours.call[FUNCTION_LIST] = (call_t)C_GetFunctionList;
    ours.call[SLOT_LIST] = C_GetSlotList;
    ours.call[MECHANISM_LIST] = C_GetMechanismList;
    ours.call[OPEN_SESSION] = C_OpenSession;
    ours.call[LOGIN] = C_Login;
    ours.call[FIND_OBJECTS] = C_FindObjectsInit;
    ours.call[ENCRYPT_INIT] = C_EncryptInit;
    ours.call[DECRYPT_INIT] = C_DecryptInit;
  }
  *list = &ours;
  return 0;
}
