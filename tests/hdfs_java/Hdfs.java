import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.util.ToolRunner;

/**
 * A name node and a data node, with their data in the folder that is named. The first line of the output
 * has their ports for HTTP and RPC. Each line of the input is a command of `hdfs dfs`, its words separated
 * by spaces; "exit code N" follows its output. The end of the input ends the nodes.
 */
public class Hdfs {
  public static void main(String[] arguments) throws Exception {
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
      error.printStackTrace();
      System.exit(1);
    });
    DefaultMetricsSystem.setMiniClusterMode(true); // both nodes name metrics of this process
    File folder = new File(arguments[0]).getAbsoluteFile();
    Configuration settings = new Configuration();
    settings.set("fs.defaultFS", "hdfs://127.0.0.1:0");
    settings.set("dfs.namenode.http-address", "127.0.0.1:0");
    settings.set("dfs.namenode.name.dir", new File(folder, "name").toURI().toString());
    settings.set("dfs.datanode.data.dir", new File(folder, "data").toURI().toString());
    settings.set("dfs.datanode.hostname", "127.0.0.1");
    for (String port : new String[] {"address", "http.address", "ipc.address"})
      settings.set("dfs.datanode." + port, "127.0.0.1:0");
    settings.setInt("dfs.replication", 1);
    // How long a writer waits if the name node does not know yet that a block is stored; else 400 ms.
    settings.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 10);
    NameNode.format(settings);
    NameNode names = NameNode.createNameNode(new String[0], settings);
    settings.set("fs.defaultFS", "hdfs://127.0.0.1:" + names.getNameNodeAddress().getPort());
    DataNode.createDataNode(new String[0], settings);
    while (names.getNamesystem().getNumLiveDataNodes() == 0) Thread.sleep(50);
    System.out.println(names.getHttpAddress().getPort() + " " + names.getNameNodeAddress().getPort());

    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line = commands.readLine(); line != null; line = commands.readLine())
      System.out.println("exit code " + ToolRunner.run(settings, new FsShell(), line.split(" ")));
    System.exit(0);
  }
}
