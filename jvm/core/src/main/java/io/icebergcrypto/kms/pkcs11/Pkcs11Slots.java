package io.icebergcrypto.kms.pkcs11;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.security.ProviderException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The tokens that a PKCS#11 library shows, by slot. SunPKCS11 cannot choose a token by its label,
 * and has no method that returns one. It prints labels, though, when it is configured with {@code
 * showInfo}: that is read here. For as long as this takes (some milliseconds a slot), what the
 * calling thread prints to standard output is kept back; other threads print as before.
 */
final class Pkcs11Slots {
  private static final Pattern ALL_SLOTS = Pattern.compile("(?m)^All slots: (.*)$");
  private static final Pattern NUMBER = Pattern.compile("[0-9]+");
  private static final Pattern SLOT = Pattern.compile("(?m)^Slot info for slot ([0-9]+):$");
  private static final Pattern LABEL = Pattern.compile("(?m)^Token info .*:\\R\\s*label: (.*)$");

  private Pkcs11Slots() {}

  /**
   * What a library shows.
   *
   * @param labels the labels of its tokens, by slot id
   * @param failure why a slot could not be read; null when all could
   */
  record Found(Map<Long, String> labels, ProviderException failure) {}

  /**
   * Looks at all slots of a library. Those without a token, or with one that has not been
   * initialized, are left out.
   *
   * @throws ProviderException when the library cannot be used at all
   */
  static Found look(String library) {
    Map<Long, String> labels = new TreeMap<>();
    ProviderException lastFailure = null;
    int slots = 1;
    for (int index = 0; index < slots; index++) {
      List<ProviderException> failure = new ArrayList<>();
      int slotIndex = index;
      String shown =
          printedBy(
              () -> {
                try {
                  Pkcs11Library.open(library, "slotListIndex = " + slotIndex + "\nshowInfo = true");
                } catch (ProviderException e) {
                  failure.add(e);
                }
              });
      Matcher all = ALL_SLOTS.matcher(shown);
      if (!all.find()) {
        throw failure.isEmpty()
            ? new ProviderException("this Java does not list the slots of a PKCS#11 library")
            : failure.get(0);
      }

      slots = (int) NUMBER.matcher(all.group(1)).results().count(); // "(none)" has none
      Matcher slot = SLOT.matcher(shown);
      Matcher label = LABEL.matcher(shown);
      if (slot.find() && label.find()) {
        labels.put(Long.parseLong(slot.group(1)), label.group(1).stripTrailing());
      } else if (slots > 0 && !failure.isEmpty() && !Pkcs11Errors.isWithoutToken(failure.get(0))) {
        lastFailure = failure.get(0);
      }
    }

    return new Found(labels, lastFailure);
  }

  /** Whether a label that SunPKCS11 shows is the one that is meant. It shows UTF-8 byte by byte. */
  static boolean matches(String shown, String label) {
    return shown.equals(label)
        || shown.equals(
            new String(label.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1));
  }

  /** What this thread prints to standard output while an action runs. */
  private static synchronized String printedBy(Runnable action) {
    PrintStream before = System.out;
    Aside aside = new Aside(before);
    PrintStream meanwhile = new PrintStream(aside, true, Charset.defaultCharset());
    System.setOut(meanwhile);
    try {
      action.run();
    } finally {
      aside.done = true;
      // if another stream has been set meanwhile, it stays
      if (System.out == meanwhile) {
        System.setOut(before);
      }
    }

    return aside.mine.toString(Charset.defaultCharset());
  }

  /** Keeps what one thread writes until it is done, and passes on all else. */
  private static final class Aside extends OutputStream {
    private final Thread me = Thread.currentThread();
    private final ByteArrayOutputStream mine = new ByteArrayOutputStream();
    private final PrintStream others;
    private volatile boolean done;

    Aside(PrintStream others) {
      this.others = others;
    }

    @Override
    public void write(int oneByte) {
      if (isMine()) {
        mine.write(oneByte);
      } else {
        others.write(oneByte);
      }
    }

    @Override
    public void write(byte[] bytes, int from, int length) {
      if (isMine()) {
        mine.write(bytes, from, length);
      } else {
        others.write(bytes, from, length);
      }
    }

    @Override
    public void flush() {
      others.flush();
    }

    private boolean isMine() {
      return !done && Thread.currentThread() == me;
    }
  }
}
