import java.io.File;
import java.io.IOException;
import org.apache.kerby.kerberos.kerb.server.SimpleKdcServer;

/**
 * A Kerberos KDC (Apache Kerby) on 127.0.0.1 and a free TCP port, with nothing on disk but its
 * clients' files.
 *
 * <p>Arguments: its folder, which gets krb5.conf; then principals, each of which gets a keytab
 * there, with its first component's name. Prints one line, {@code PORT n}, once it answers; ends
 * when its standard input does, so that it cannot outlive the tests.
 */
public final class KdcServer {
  private static final String REALM = "TEST.LOCAL";

  public static void main(String[] args) throws Exception {
    File folder = new File(args[0]);
    SimpleKdcServer kdc = new SimpleKdcServer();
    kdc.setWorkDir(folder);
    kdc.setKdcHost("127.0.0.1");
    kdc.setKdcRealm(REALM);
    kdc.setAllowUdp(false); // which would have to listen, too
    kdc.init();
    kdc.start();
    for (int i = 1; i < args.length; i++) {
      String principal = args[i] + "@" + REALM;
      kdc.createPrincipal(principal);
      kdc.exportPrincipal(principal, new File(folder, args[i].split("/")[0] + ".keytab"));
    }

    System.out.println("PORT " + kdc.getKdcSetting().getKdcTcpPort());
    awaitEndOfInput();
    Runtime.getRuntime().halt(0);
  }

  private static void awaitEndOfInput() throws IOException {
    while (System.in.read() >= 0) {
      // The parent says nothing: it only closes the pipe, or dies.
    }
  }
}
