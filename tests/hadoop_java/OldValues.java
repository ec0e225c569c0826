import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.util.zip.DeflaterOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.UTF8;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.WritableUtils;
import org.apache.nutch.crawl.CrawlDatum;
import org.apache.nutch.parse.ParseText;
import org.apache.nutch.protocol.Content;
import org.apache.nutch.protocol.ProtocolStatus;

/**
 * Writes values as versions of Nutch before 1.0 did, and what they mean: {@code OldValues FOLDER}.
 *
 * <p>The bytes are written by hand, after the sources of these versions; maps by the MapWritable of Nutch
 * 1.3, which must be on the class path. Nutch itself reads some of them wrongly today: intervals of days as
 * seconds, and these maps as Hadoop's.
 */
public class OldValues {
  static final byte[] OLD_STATUSES = {1, 2, 3, 4, 5, 6, 7, 0};
  static final byte[] STATUSES = {1, 2, 3, 0x43, 0x21, 0x22, 0x25, 0x41};

  public static void main(String[] words) throws Exception {
    File folder = new File(words[0]);
    folder.mkdirs();
    try (PrintStream json = new PrintStream(new File(folder, "datums.json"), "UTF-8");
        SequenceFile.Writer writer = writer(folder, "datums", CrawlDatum.class)) {
      for (int number = 0; number < 70; number++) {
        writeDatum(writer, json, number, number / 10 + 1);
      }
    }
    try (PrintStream json = new PrintStream(new File(folder, "contents.json"), "UTF-8");
        SequenceFile.Writer writer = writer(folder, "contents", Content.class)) {
      for (int version = 0; version < 3; version++) {
        writeContent(writer, json, version);
      }
    }
    try (PrintStream json = new PrintStream(new File(folder, "texts.json"), "UTF-8");
        SequenceFile.Writer writer = writer(folder, "texts", ParseText.class)) {
      DataOutputBuffer value = new DataOutputBuffer();
      value.writeByte(1);
      WritableUtils.writeCompressedString(value, "a compressed text");
      append(writer, "http://example.org/", value);
      json.println("{\"key\": \"http://example.org/\", \"text\": \"a compressed text\"}");
    }
  }

  static void writeDatum(SequenceFile.Writer writer, PrintStream json, int number, int version)
      throws Exception {
    CrawlDatum meaning = new CrawlDatum();
    int which = number % OLD_STATUSES.length;
    meaning.setStatus(STATUSES[which]);
    meaning.setFetchTime(1_150_000_000_000L + number);
    meaning.setRetriesSinceFetch(number % 3);
    meaning.setFetchInterval(number % 4 * 86400 / 2);
    meaning.setScore(version == 1 ? number : number / 4f);
    DataOutputBuffer value = new DataOutputBuffer();
    value.writeByte(version);
    value.writeByte(version < 5 ? OLD_STATUSES[which] : STATUSES[which]);
    value.writeLong(meaning.getFetchTime());
    value.writeByte(meaning.getRetriesSinceFetch());
    if (version < 6) {
      value.writeFloat(number % 4 / 2f);
    } else {
      value.writeInt(meaning.getFetchInterval());
    }
    if (version == 1) {
      value.writeInt(number);
    } else {
      value.writeFloat(meaning.getScore());
    }
    if (version >= 3) {
      meaning.setModifiedTime(1_100_000_000_000L + number);
      value.writeLong(meaning.getModifiedTime());
      byte[] signature = new byte[number % 2 * 16];
      value.writeByte(signature.length);
      value.write(signature);
      if (signature.length > 0) {
        meaning.setSignature(signature);
      }
    }
    if (version >= 4) {
      boolean hasMap = number % 3 != 0;
      value.writeBoolean(hasMap);
      if (hasMap && version == 4 && number % 2 == 0) {
        writeOldestMap(value, meaning);
      } else if (hasMap && version < 7) {
        writeOldMap(value, meaning);
      } else if (hasMap) {
        meaning.getMetaData().put(new Text("depth"), new IntWritable(number));
        meaning.getMetaData().write(value);
      }
    }
    String key = String.format("http://example.org/%02d", number);
    append(writer, key, value);
    json.println("{\"key\": " + Dump.quote(key) + ", " + Dump.fields(meaning) + "}");
  }

  /** As Nutch 0.9 to 1.0 wrote maps. */
  static void writeOldMap(DataOutputBuffer value, CrawlDatum meaning) throws Exception {
    Writable map = (Writable) Class.forName("org.apache.nutch.crawl.MapWritable").getDeclaredConstructor()
        .newInstance();
    java.lang.reflect.Method put = map.getClass().getMethod("put", Writable.class, Writable.class);
    Writable[][] entries = {
      {new Text("depth"), new IntWritable(7)}, {new Text("title"), new Text("\u00fc")},
      {new Text("_pst_"), new ProtocolStatus(ProtocolStatus.MOVED, "http://example.org/new")},
      {new Text("flag"), new org.apache.hadoop.io.BooleanWritable(true)},
    };
    for (Writable[] entry : entries) {
      put.invoke(map, entry[0], entry[1]);
      meaning.getMetaData().put(entry[0], entry[1]);
    }
    map.write(value);
  }

  /** As Nutch 0.8 did, whose texts were UTF8, and whose statuses were compressed. */
  @SuppressWarnings("deprecation")
  static void writeOldestMap(DataOutputBuffer value, CrawlDatum meaning) throws IOException {
    value.writeInt(2);
    value.writeByte(0);
    value.writeByte(-125);
    value.writeByte(-116);
    UTF8.writeString(value, "depth");
    value.writeInt(8);
    value.writeByte(-125);
    value.writeByte(-114);
    UTF8.writeString(value, "_pst_");
    value.writeByte(1);
    value.writeByte(ProtocolStatus.SUCCESS);
    value.writeLong(5);
    WritableUtils.writeCompressedStringArray(value, new String[] {"argument"});
    meaning.getMetaData().put(new Text("depth"), new IntWritable(8));
    meaning.getMetaData().put(new Text("_pst_"),
        new ProtocolStatus(ProtocolStatus.SUCCESS, new String[] {"argument"}, 5));
  }

  @SuppressWarnings("deprecation")
  static void writeContent(SequenceFile.Writer writer, PrintStream json, int version) throws Exception {
    String url = "http://example.org/" + version;
    ByteArrayOutputStream deflated = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(new DeflaterOutputStream(deflated));
    out.writeByte(version);
    for (String text : new String[] {url, url + "/base"}) {
      writeString(out, text, version);
    }
    out.writeInt(3);
    out.write(new byte[] {0, -1, 65});
    writeString(out, "text/plain", version);
    out.writeInt(1);
    writeString(out, "Date", version);
    out.writeInt(2);
    writeString(out, "one", version);
    writeString(out, "two", version);
    out.close();
    DataOutputBuffer value = new DataOutputBuffer();
    value.writeInt(deflated.size());
    value.write(deflated.toByteArray());
    append(writer, url, value);
    json.println("{\"key\": \"" + url + "\", \"url\": \"" + url + "\", \"base_url\": \"" + url
        + "/base\", \"content\": \"00ff41\", \"content_type\": \"text/plain\", "
        + "\"metadata\": [[\"Date\", \"one\"], [\"Date\", \"two\"]]}");
  }

  @SuppressWarnings("deprecation")
  static void writeString(DataOutputStream out, String text, int version) throws IOException {
    if (version < 2) {
      UTF8.writeString(out, text);
    } else {
      Text.writeString(out, text);
    }
  }

  static SequenceFile.Writer writer(File folder, String name, Class<?> value) throws IOException {
    return SequenceFile.createWriter(new Configuration(),
        SequenceFile.Writer.file(new Path(folder.getPath(), name + ".seq")),
        SequenceFile.Writer.keyClass(Text.class), SequenceFile.Writer.valueClass(value),
        SequenceFile.Writer.compression(SequenceFile.CompressionType.NONE));
  }

  static void append(SequenceFile.Writer writer, String key, DataOutputBuffer value) throws IOException {
    DataOutputBuffer keyBytes = new DataOutputBuffer();
    new Text(key).write(keyBytes);
    writer.appendRaw(keyBytes.getData(), 0, keyBytes.getLength(), new RawValue(value));
  }

  static class RawValue implements SequenceFile.ValueBytes {
    private final DataOutputBuffer bytes;

    RawValue(DataOutputBuffer bytes) {
      this.bytes = bytes;
    }

    @Override
    public void writeUncompressedBytes(DataOutputStream out) throws IOException {
      out.write(bytes.getData(), 0, bytes.getLength());
    }

    @Override
    public void writeCompressedBytes(DataOutputStream out) throws IOException {
      throw new IOException("not compressed");
    }

    @Override
    public int getSize() {
      return bytes.getLength();
    }
  }
}
