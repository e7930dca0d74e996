import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * HDFS, a name node and one data node, on 127.0.0.1 and free ports.
 *
 * <p>Argument: its folder. Prints one line, {@code PORT n}, of the name node, once it answers; ends
 * when its standard input does, so that it cannot outlive the tests.
 */
public final class HdfsServer {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[0]);
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
    cluster.waitActive();
    System.out.println("PORT " + cluster.getNameNodePort());

    awaitEndOfInput();
    cluster.shutdown();
    System.exit(0);
  }

  private static void awaitEndOfInput() throws IOException {
    while (System.in.read() >= 0) {
      // The parent says nothing: it only closes the pipe, or dies.
    }
  }
}
