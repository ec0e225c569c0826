import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.MapFile;
import org.apache.hadoop.io.MapWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.nutch.crawl.CrawlDatum;
import org.apache.nutch.crawl.Inlink;
import org.apache.nutch.crawl.Inlinks;
import org.apache.nutch.metadata.Metadata;
import org.apache.nutch.parse.Outlink;
import org.apache.nutch.parse.ParseData;
import org.apache.nutch.parse.ParseText;
import org.apache.nutch.protocol.Content;

/** Prints what Nutch's own classes read from SequenceFiles and map files, a line of JSON for each record. */
public class Dump {
  public static void main(String[] words) throws Exception {
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    for (String word : words) {
      dump(new Path(word), out);
    }
    out.flush();
  }

  /** Reads a SequenceFile, or a folder with the files data and index; looks each key up in a map file. */
  static void dump(Path path, PrintStream out) throws Exception {
    Configuration conf = new Configuration();
    boolean isMap = FileSystem.getLocal(conf).getFileStatus(path).isDirectory();
    Path data = isMap ? new Path(path, "data") : path;
    try (SequenceFile.Reader reader = new SequenceFile.Reader(conf, SequenceFile.Reader.file(data))) {
      Writable key = (Writable) reader.getKeyClass().getDeclaredConstructor().newInstance();
      Writable value = (Writable) reader.getValueClass().getDeclaredConstructor().newInstance();
      MapFile.Reader map = isMap ? new MapFile.Reader(path, conf) : null;
      while (reader.next(key, value)) {
        if (map != null) {
          Writable again = (Writable) reader.getValueClass().getDeclaredConstructor().newInstance();
          if (map.get((Text) key, again) == null) {
            throw new IllegalStateException("the index leads to no record for " + key);
          }
        }
        out.println("{\"key\": " + quote(key.toString()) + ", " + fields(value) + "}");
      }
      if (map != null) {
        map.close();
      }
    }
  }

  static String fields(Writable value) throws Exception {
    if (value instanceof CrawlDatum) {
      return fields((CrawlDatum) value);
    } else if (value instanceof Inlinks) {
      List<String> links = new ArrayList<>();
      for (Iterator<Inlink> each = ((Inlinks) value).iterator(); each.hasNext(); ) {
        Inlink link = each.next();
        links.add("[" + quote(link.getFromUrl()) + ", " + quote(link.getAnchor()) + "]");
      }
      return "\"inlinks\": " + sorted(links);
    } else if (value instanceof Content) {
      Content content = (Content) value;
      return "\"url\": " + quote(content.getUrl()) + ", \"base_url\": " + quote(content.getBaseUrl())
          + ", \"content\": " + quote(hex(content.getContent()))
          + ", \"content_type\": " + quote(content.getContentType())
          + ", \"metadata\": " + pairs(content.getMetadata());
    } else if (value instanceof ParseData) {
      ParseData data = (ParseData) value;
      List<String> links = new ArrayList<>();
      for (Outlink link : data.getOutlinks()) {
        links.add("[" + quote(link.getToUrl()) + ", " + quote(link.getAnchor()) + "]");
      }
      return "\"status\": " + data.getStatus().getMajorCode()
          + ", \"minor_status\": " + data.getStatus().getMinorCode()
          + ", \"status_text\": " + quote(data.getStatus().toString())
          + ", \"title\": " + quote(data.getTitle()) + ", \"outlinks\": " + links
          + ", \"content_metadata\": " + pairs(data.getContentMeta())
          + ", \"parse_metadata\": " + pairs(data.getParseMeta());
    } else if (value instanceof ParseText) {
      return "\"text\": " + quote(((ParseText) value).getText());
    }
    return "\"value\": " + quote(value.toString());
  }

  static String fields(CrawlDatum datum) {
    byte[] signature = datum.getSignature();
    return "\"status\": " + datum.getStatus() + ", \"fetch_time\": " + datum.getFetchTime()
        + ", \"retries\": " + datum.getRetriesSinceFetch()
        + ", \"interval\": " + datum.getFetchInterval()
        + ", \"score\": " + datum.getScore() + ", \"modified_time\": " + datum.getModifiedTime()
        + ", \"signature\": " + (signature == null ? "null" : quote(hex(signature)))
        + ", \"metadata\": " + entries(datum.getMetaData());
  }

  static String entries(MapWritable map) {
    List<String> entries = new ArrayList<>();
    for (Map.Entry<Writable, Writable> entry : map.entrySet()) {
      entries.add("[" + quote(entry.getKey().toString()) + ", "
          + quote(entry.getValue().getClass().getSimpleName()) + ", "
          + quote(entry.getValue().toString()) + "]");
    }
    return sorted(entries);
  }

  static String pairs(Metadata metadata) {
    List<String> pairs = new ArrayList<>();
    for (String name : metadata.names()) {
      for (String value : metadata.getValues(name)) {
        pairs.add("[" + quote(name) + ", " + quote(value) + "]");
      }
    }
    return sorted(pairs);
  }

  static String sorted(List<String> items) {
    Collections.sort(items);
    return items.toString();
  }

  static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte each : bytes) {
      text.append(String.format("%02x", each));
    }
    return text.toString();
  }

  static String quote(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char each : text.toCharArray()) {
      if (each == '"' || each == '\\') {
        quoted.append('\\').append(each);
      } else if (each < 32 || each > 126) {
        quoted.append(String.format("\\u%04x", (int) each));
      } else {
        quoted.append(each);
      }
    }
    return quoted.append('"').toString();
  }
}
