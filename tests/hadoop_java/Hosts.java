import java.io.File;
import java.util.Date;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.MapFile;
import org.apache.hadoop.io.Text;
import org.apache.nutch.hostdb.HostDatum;

/** Writes a HostDb, whose numbers have four or eight bytes, by the version of Nutch: {@code Hosts FOLDER}. */
public class Hosts {
  public static void main(String[] words) throws Exception {
    try (MapFile.Writer writer = Values.writer(new File(words[0]), "hostdb", HostDatum.class)) {
      for (int number = 0; number < 12; number++) {
        HostDatum host = new HostDatum(number / 4f, new Date(1_700_000_000_000L + number));
        host.setHomepageUrl(number % 2 == 0 ? "" : "https://host" + number + ".example.org/");
        host.incDnsFailures();
        host.setUnfetched(number);
        host.setFetched(number * 1000);
        host.setNotModified(number % 3);
        host.setRedirTemp(1);
        host.setRedirPerm(2);
        host.setGone(number % 5);
        if (number % 3 == 0) {
          host.getMetaData().put(new Text("responseTime"), new IntWritable(number));
        }
        writer.append(new Text(String.format("host%02d.example.org", number)), host);
      }
    }
  }
}
