import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node and a data node, until standard input ends. The first argument is a directory. */
public final class Hdfs {
  public static void main(String[] arguments) throws Exception {
    Configuration settings = new Configuration();
    settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(arguments[0]).getAbsolutePath());
    settings.set("dfs.permissions.enabled", "false");
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(settings).numDataNodes(1).build();
    cluster.waitActive();
    System.out.println("port " + cluster.getNameNodePort());
    System.out.flush();
    while (System.in.read() >= 0) {}
    cluster.shutdown(true);
  }
}
