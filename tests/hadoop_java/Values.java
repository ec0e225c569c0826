import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.util.zip.GZIPOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BooleanWritable;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DoubleWritable;
import org.apache.hadoop.io.FloatWritable;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.MD5Hash;
import org.apache.hadoop.io.MapFile;
import org.apache.hadoop.io.MapWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.VIntWritable;
import org.apache.hadoop.io.VLongWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionOutputStream;
import org.apache.hadoop.io.compress.Compressor;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.util.ReflectionUtils;
import org.apache.nutch.crawl.CrawlDatum;
import org.apache.nutch.crawl.Inlink;
import org.apache.nutch.crawl.Inlinks;
import org.apache.nutch.metadata.Metadata;
import org.apache.nutch.parse.Outlink;
import org.apache.nutch.parse.ParseData;
import org.apache.nutch.parse.ParseStatus;
import org.apache.nutch.parse.ParseText;
import org.apache.nutch.protocol.Content;
import org.apache.nutch.protocol.ProtocolStatus;

/**
 * Writes files with the classes of the Nutch on the class path: {@code Values FOLDER [codecs]}.
 *
 * <p>Without "codecs" it writes links and parts of a segment, whose form depends on the version of Nutch.
 * With it, a CrawlDb for each codec and compression.
 */
public class Values {
  static final Configuration CONF = new Configuration();
  static final String[] CODECS = {
    "org.apache.hadoop.io.compress.DefaultCodec", "GzipCodec",
    "org.apache.hadoop.io.compress.BZip2Codec", "org.apache.hadoop.io.compress.SnappyCodec",
    "org.apache.hadoop.io.compress.Lz4Codec", "ZStandardCodec",
  };

  public static void main(String[] words) throws Exception {
    File folder = new File(words[0]);
    folder.mkdirs();
    if (words.length > 1) {
      CONF.setInt("io.compression.codec.lz4.buffersize", 4096);
      CONF.setInt("io.compression.codec.snappy.buffersize", 4096);
      writeCodecs(folder);
      return;
    }
    writeLinks(folder);
    writeSegment(folder);
  }

  static void writeCodecs(File folder) throws Exception {
    writeDatums(folder, "none", CompressionType.NONE, null);
    for (String name : CODECS) {
      Class<?> codecClass = Class.forName(name);
      for (CompressionType type : new CompressionType[] {CompressionType.RECORD, CompressionType.BLOCK}) {
        CompressionCodec codec = (CompressionCodec) ReflectionUtils.newInstance(codecClass, CONF);
        String file = type.toString().toLowerCase() + "-" + codecClass.getSimpleName();
        writeDatums(folder, file, type, codec);
      }
    }
  }

  static void writeDatums(File folder, String name, CompressionType type, CompressionCodec codec)
      throws Exception {
    Path path = new Path(folder.getPath(), name + ".seq");
    SequenceFile.Writer.Option compression =
        codec == null ? SequenceFile.Writer.compression(type) : SequenceFile.Writer.compression(type, codec);
    SequenceFile.Metadata metadata = new SequenceFile.Metadata();
    metadata.set(new Text("made by"), new Text("Values.java"));
    try (SequenceFile.Writer writer = SequenceFile.createWriter(CONF, SequenceFile.Writer.file(path),
        SequenceFile.Writer.keyClass(Text.class), SequenceFile.Writer.valueClass(CrawlDatum.class),
        SequenceFile.Writer.metadata(metadata), compression)) {
      for (int number = 0; number < 120; number++) {
        writer.append(new Text(url(number)), datum(number));
        if (number % 50 == 49) {
          writer.sync();
        }
      }
    }
  }

  static String url(int number) {
    String tail = number % 10 == 3 ? "?" + "q".repeat(200) : number % 10 == 4 ? "/\u00fc\u4e16\ud83d\ude00" : "";
    return String.format("https://www.example.org/%04d/page%s", number, tail);
  }

  static CrawlDatum datum(int number) {
    CrawlDatum datum = new CrawlDatum(number % 7 + 1, 86400 * (number % 40), number / 8f);
    datum.setFetchTime(1_700_000_000_000L + 1_000_003L * number);
    datum.setRetriesSinceFetch(number % 4);
    if (number % 3 == 0) {
      return datum;
    }
    datum.setModifiedTime(1_600_000_000_000L + number);
    byte[] signature = new byte[number % 5 == 0 ? 20 : 16];
    for (int index = 0; index < signature.length; index++) {
      signature[index] = (byte) (number * 31 + index * 7);
    }
    datum.setSignature(signature);
    MapWritable map = datum.getMetaData();
    map.put(new Text("Content-Type"), new Text("text/html"));
    map.put(new Text("_rs_"), new IntWritable(number * 17));
    map.put(new Text("nutch.protocol.code"), new Text("200"));
    String[] arguments = number % 4 == 0 ? null : number % 4 == 1 ? new String[] {url(number + 3)}
        : number % 4 == 2 ? new String[] {} : new String[] {"one", "two, args[1]=2"};
    map.put(new Text("_pst_"), new ProtocolStatus(number % 2 == 0 ? 1 : 12, arguments, number * 1000L));
    if (number % 10 == 7) {
      map.put(new Text("long"), new LongWritable(-5_000_000_000L));
      map.put(new Text("float"), new FloatWritable(1e-5f * number));
      map.put(new Text("double"), new DoubleWritable(Math.PI));
      map.put(new Text("boolean"), new BooleanWritable(true));
      map.put(new Text("nothing"), NullWritable.get());
      map.put(new Text("bytes"), new BytesWritable(new byte[] {0, 1, -1}));
      map.put(new Text("hash"), MD5Hash.digest("a"));
      map.put(new Text("vint"), new VIntWritable(-200));
      map.put(new Text("vlong"), new VLongWritable(1L << 40));
      map.put(new IntWritable(5), new Text("a key that is no text"));
      map.put(new Text("long text"), new Text("t".repeat(300)));
    }
    return datum;
  }

  static void writeLinks(File folder) throws Exception {
    try (MapFile.Writer writer = writer(folder, "linkdb", Inlinks.class)) {
      for (int number = 0; number < 30; number++) {
        Inlinks links = new Inlinks();
        for (int link = 0; link < number % 6; link++) {
          Inlink inlink =
              new Inlink(url(link * 3), link % 2 == 0 ? "" : "anchor \u00e4 " + "a".repeat(50 * link));
          if (number == 9) {
            addMetadata(inlink);
          }
          links.add(inlink);
        }
        writer.append(new Text(url(number)), links);
      }
    }
  }

  static void writeSegment(File folder) throws Exception {
    MapFile.Writer contents = writer(folder, "content", Content.class);
    MapFile.Writer parses = writer(folder, "parse_data", ParseData.class);
    MapFile.Writer texts = writer(folder, "parse_text", ParseText.class);
    for (int number = 0; number < 30; number++) {
      Text key = new Text(url(number));
      contents.append(key, content(number));
      Outlink[] links = new Outlink[number % 4];
      for (int link = 0; link < links.length; link++) {
        links[link] = new Outlink(url(link), "to " + link);
        if (number == 7) {
          addMetadata(links[link]);
        }
      }
      ParseStatus status = number % 9 == 5 ? new ParseStatus(2, 200, new String[] {"why"})
          : number % 9 == 6 ? new ParseStatus(1, 100, new String[] {"http://a/", "3"}) : new ParseStatus(1);
      parses.append(key, new ParseData(status, "Title " + number + " \u00e9", links, metadata(number),
          metadata(number + 1)));
      texts.append(key, new ParseText("text of page " + number + " \u4e16\u754c".repeat(number * 5)));
    }
    contents.close();
    parses.close();
    texts.close();
  }

  static Content content(int number) throws Exception {
    Content content = new Content();
    content.setContentType(number % 2 == 0 ? "text/html" : "application/pdf");
    content.setContent(("<p>" + number).repeat(number).getBytes("UTF-8"));
    content.setMetadata(metadata(number));
    setField(content, "url", url(number));
    setField(content, "base", url(number + 1));
    return content;
  }

  static Metadata metadata(int number) {
    Metadata metadata = new Metadata();
    metadata.add("Date", "today");
    for (int each = 0; each < number % 3; each++) {
      metadata.add("Set-Cookie", "c=" + each + "; \u00fc");
    }
    return metadata;
  }

  /** Links to pages may have metadata since Nutch 1.22, links of pages since 1.6. */
  static void addMetadata(Writable link) throws Exception {
    try {
      MapWritable map = new MapWritable();
      map.put(new Text("depth"), new IntWritable(3));
      link.getClass().getMethod("setMetadata", MapWritable.class).invoke(link, map);
    } catch (NoSuchMethodException older) {
      return;
    }
  }

  static void setField(Object value, String name, Object to) throws Exception {
    Field field = value.getClass().getDeclaredField(name);
    field.setAccessible(true);
    field.set(value, to);
  }

  static MapFile.Writer writer(File folder, String name, Class<? extends Writable> value) throws IOException {
    return new MapFile.Writer(CONF, new Path(folder.getPath(), name),
        MapFile.Writer.keyClass(Text.class), MapFile.Writer.valueClass(value),
        SequenceFile.Writer.compression(CompressionType.BLOCK));
  }
}

/** Hadoop's own writes SequenceFiles only with native libraries; this one has the same format. */
class GzipCodec extends DefaultCodec {
  @Override
  public CompressionOutputStream createOutputStream(OutputStream out, Compressor ignored) throws IOException {
    return new CompressionOutputStream(out) {
      private GZIPOutputStream gzip;

      @Override
      public void write(int value) throws IOException {
        write(new byte[] {(byte) value}, 0, 1);
      }

      @Override
      public void write(byte[] bytes, int from, int length) throws IOException {
        if (gzip == null) {
          gzip = new GZIPOutputStream(out);
        }
        gzip.write(bytes, from, length);
      }

      @Override
      public void finish() throws IOException {
        write(new byte[0], 0, 0);
        gzip.finish();
      }

      @Override
      public void resetState() {
        gzip = null;
      }

      @Override
      public void close() throws IOException {
        out.close();
      }
    };
  }
}

/** Hadoop's own needs native libraries. */
class ZStandardCodec extends io.airlift.compress.zstd.ZstdCodec {}
