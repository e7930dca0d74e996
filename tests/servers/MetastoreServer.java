import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.RetryingHMSHandler;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;

/**
 * A Hive metastore as a service of its own, with lock tables, on Derby, 127.0.0.1 and a free port.
 * HiveMetaStore's own main listens on every address and cannot be told otherwise.
 *
 * <p>Arguments: Derby's folder, warehouse folder. Prints one line, {@code PORT n}, once it answers;
 * ends when its standard input does, so that it cannot outlive the tests.
 */
public final class MetastoreServer {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    conf.set(
        "javax.jdo.option.ConnectionURL", "jdbc:derby:;databaseName=" + args[0] + ";create=true");
    conf.set("javax.jdo.option.ConnectionDriverName", "org.apache.derby.jdbc.EmbeddedDriver");
    conf.set("datanucleus.schema.autoCreateAll", "true");
    conf.set("hive.metastore.schema.verification", "false");
    conf.set("hive.metastore.warehouse.dir", args[1]);
    // there is no Hive beside it
    conf.set(
        "metastore.expression.proxy",
        "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy");
    conf.set(
        "metastore.task.threads.always",
        "org.apache.hadoop.hive.metastore.events.EventCleanerTask");
    conf.set(
        "metastore.task.threads.remote",
        "org.apache.hadoop.hive.metastore.events.EventCleanerTask");
    System.setProperty("derby.stream.error.file", args[0] + ".log");
    TxnDbUtil.setConfValues(conf);
    TxnDbUtil.prepDb(conf);

    ThriftHiveMetastore.Iface handler =
        RetryingHMSHandler.getProxy(
            conf, new HiveMetaStore.HMSHandler("tests", conf, false), false);
    ServerSocket socket = new ServerSocket();
    socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    TThreadPoolServer server =
        new TThreadPoolServer(
            new TThreadPoolServer.Args(new TServerSocket(socket))
                .processor(new ThriftHiveMetastore.Processor<>(handler)));
    Thread serving = new Thread(server::serve);
    serving.setDaemon(true);
    serving.start();
    System.out.println("PORT " + socket.getLocalPort());

    awaitEndOfInput();
    System.exit(0);
  }

  private static void awaitEndOfInput() throws IOException {
    while (System.in.read() >= 0) {
      // The parent says nothing: it only closes the pipe, or dies.
    }
  }
}
