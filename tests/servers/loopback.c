/* Preloaded into a server that cannot be told where to listen: all that it binds is bound to 127.0.0.1. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int socket, const struct sockaddr *address, socklen_t length) {
  int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
  struct sockaddr_storage bound = {0};
  if (length > sizeof bound) {
    return next(socket, address, length);
  }
  memcpy(&bound, address, length);
  if (bound.ss_family == AF_INET) {
    ((struct sockaddr_in *)&bound)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else if (bound.ss_family == AF_INET6) { /* as Java's sockets are, which speak IPv4, too */
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &((struct sockaddr_in6 *)&bound)->sin6_addr);
  }
  return next(socket, (struct sockaddr *)&bound, length);
}
