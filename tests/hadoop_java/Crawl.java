import java.io.File;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.MapFile;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.util.ToolRunner;
import org.apache.nutch.crawl.CrawlDatum;
import org.apache.nutch.crawl.CrawlDb;
import org.apache.nutch.crawl.DeduplicationJob;
import org.apache.nutch.crawl.Generator;
import org.apache.nutch.crawl.Injector;
import org.apache.nutch.crawl.LinkDb;
import org.apache.nutch.hostdb.UpdateHostDb;
import org.apache.nutch.metadata.Metadata;
import org.apache.nutch.parse.Outlink;
import org.apache.nutch.parse.ParseData;
import org.apache.nutch.parse.ParseStatus;
import org.apache.nutch.parse.ParseText;
import org.apache.nutch.protocol.Content;
import org.apache.nutch.protocol.ProtocolStatus;
import org.apache.nutch.util.NutchConfiguration;

/**
 * Makes a small crawl with Nutch's own jobs: {@code Crawl FOLDER}.
 *
 * <p>inject, and two rounds of generate, update and invertlinks; then dedup, updatehostdb, and what generate
 * would choose next. Maven has no plug-ins of Nutch, so that nothing is fetched: this program writes what
 * fetcher and parser would have written, about a web that {@code outcome} and {@code links} make up.
 */
public class Crawl {
  /** The first minute after now: inject takes no time. */
  static final long START = (System.currentTimeMillis() / 60_000 + 1) * 60_000;
  static final long ROUND = 3_600_000L;
  static final int HOSTS = 6;
  static final int PAGES = 14;

  private final Configuration conf = NutchConfiguration.create();
  private final File folder;
  private final Path crawlDb;
  private final Path segments;

  Crawl(File folder) throws Exception {
    this.folder = folder;
    crawlDb = new Path(folder.getPath(), "crawldb");
    segments = new Path(folder.getPath(), "segments");
    conf.set("plugin.folders", new File(folder, "plugins").getAbsolutePath());
    conf.set("plugin.includes", ".*");
    conf.set("hadoop.tmp.dir", new File(folder, "tmp").getAbsolutePath());
    conf.set("http.agent.name", "nutbeam-test");
    conf.setInt("mapreduce.job.reduces", 1);
    conf.setInt("generate.max.count", 5);
    conf.setBoolean("linkdb.ignore.internal.links", false);
  }

  public static void main(String[] words) throws Exception {
    File folder = new File(words[0]);
    Crawl crawl = new Crawl(folder);
    crawl.writePlugins();
    crawl.writeSeeds();
    new Injector(crawl.conf).inject(crawl.crawlDb, new Path(folder.getPath(), "seeds"));
    for (int round = 0; round < 2; round++) {
      crawl.runRound(START + ROUND * (round + 1), 30);
    }
    new LinkDb(crawl.conf).invert(new Path(folder.getPath(), "linkdb"), crawl.segments, false, false, false);
    ToolRunner.run(crawl.conf, new DeduplicationJob(), new String[] {crawl.crawlDb.toString()});
    ToolRunner.run(crawl.conf, new UpdateHostDb(), new String[] {
        "-hostdb", folder.getPath() + "/hostdb", "-crawldb", crawl.crawlDb.toString()});
    try (PrintStream json = new PrintStream(new File(folder, "next.json"), "UTF-8")) {
      long now = START + ROUND * 3;
      json.println("{\"now\": " + now + ", \"max_per_host\": 5,");
      json.println("\"all\": " + crawl.nextChoice(now, Long.MAX_VALUE) + ",");
      json.println("\"top_12\": " + crawl.nextChoice(now, 12) + ",");
      json.println("\"in_40_days\": " + crawl.nextChoice(now + 40L * 86_400_000, Long.MAX_VALUE) + "}");
    }
    try (PrintStream json = new PrintStream(new File(folder, "crawldb.json"), "UTF-8")) {
      Dump.dump(new Path(crawl.crawlDb, "current/part-r-00000"), json);
    }
    try (PrintStream json = new PrintStream(new File(folder, "linkdb.json"), "UTF-8")) {
      Dump.dump(new Path(folder.getPath(), "linkdb/current/part-r-00000"), json);
    }
  }

  static String url(int host, int page) {
    return "http://host" + host % HOSTS + ".example.org/" + (page % PAGES == 0 ? "" : "page" + page % PAGES);
  }

  static int hash(String url) {
    CRC32 crc = new CRC32();
    crc.update(url.getBytes(StandardCharsets.UTF_8));
    return (int) (crc.getValue() & 0x7fffffff);
  }

  /** Returns the status of the fetch; most pages are there. */
  static byte outcome(String url) {
    switch (hash(url) % 11) {
      case 1: return CrawlDatum.STATUS_FETCH_GONE;
      case 2: return CrawlDatum.STATUS_FETCH_RETRY;
      case 3: return CrawlDatum.STATUS_FETCH_REDIR_TEMP;
      case 4: return CrawlDatum.STATUS_FETCH_REDIR_PERM;
      default: return CrawlDatum.STATUS_FETCH_SUCCESS;
    }
  }

  static Outlink[] links(String url) throws Exception {
    int seed = hash(url);
    Outlink[] links = new Outlink[2 + seed % 6];
    for (int number = 0; number < links.length; number++) {
      links[number] = new Outlink(url(seed / 3 + number * number, seed / 7 + number * 3), "link " + number);
    }
    return links;
  }

  static String text(String url) {
    // Some pages are copies.
    return hash(url) % 13 < 2 ? "the same text" : "text of " + url;
  }

  void writePlugins() throws Exception {
    write("plugins/nutch-extensionpoints/plugin.xml",
        "<plugin id='nutch-extensionpoints' name='points' version='1' provider-name='test'>"
            + point("indexer.IndexingFilter") + point("parse.Parser") + point("parse.HtmlParseFilter")
            + point("protocol.Protocol") + point("net.URLFilter") + point("net.URLNormalizer")
            + point("scoring.ScoringFilter") + point("segment.SegmentMergeFilter")
            + point("net.URLExemptionFilter") + point("indexer.IndexWriter") + point("exchange.Exchange")
            + point("publisher.NutchPublisher") + "</plugin>");
    write("plugins/scoring/plugin.xml",
        "<plugin id='scoring' name='scoring' version='1' provider-name='test'>"
            + "<requires><import plugin='nutch-extensionpoints'/></requires>"
            + "<extension id='test.scoring' name='scoring' point='org.apache.nutch.scoring.ScoringFilter'>"
            + "<implementation id='OpicScoring' class='OpicScoring'/></extension></plugin>");
  }

  static String point(String name) {
    return "<extension-point id='org.apache.nutch." + name + "' name='" + name + "'/>";
  }

  void writeSeeds() throws Exception {
    StringBuilder seeds = new StringBuilder();
    for (int host = 0; host < HOSTS; host++) {
      seeds.append(url(host, 0)).append("\tnutch.score=").append(1 + host * 0.37);
      if (host == 1) {
        seeds.append("\tnutch.fetchInterval=86400\ttopic=pears");
      } else if (host == 2) {
        seeds.append("\tnutch.fetchInterval.fixed=3600");
      }
      seeds.append('\n').append(url(host, 5)).append("\tnutch.score=").append(2 - host * 0.23).append('\n');
    }
    write("seeds/seeds.txt", seeds.toString());
  }

  void write(String name, String text) throws Exception {
    File file = new File(folder, name);
    file.getParentFile().mkdirs();
    Files.write(file.toPath(), text.getBytes(StandardCharsets.UTF_8));
  }

  void runRound(long now, long topN) throws Exception {
    Path segment = new Path(segments, String.valueOf(now));
    Path made = new Generator(conf).generate(crawlDb, segments, 1, topN, now, false, false)[0];
    FileSystem.getLocal(conf).rename(made, segment);
    fetch(segment, now + 60_000);
    new CrawlDb(conf).update(crawlDb, new Path[] {segment}, false, false);
  }

  TreeMap<String, CrawlDatum> fetchList(Path segment) throws Exception {
    TreeMap<String, CrawlDatum> list = new TreeMap<>();
    Path file = new Path(segment, "crawl_generate/part-r-00000");
    try (SequenceFile.Reader reader = new SequenceFile.Reader(conf, SequenceFile.Reader.file(file))) {
      Text url = new Text();
      CrawlDatum datum = new CrawlDatum();
      while (reader.next(url, datum)) {
        list.put(url.toString(), (CrawlDatum) datum.clone());
      }
    }
    return list;
  }

  /** Writes what fetcher and parser write about a segment. */
  void fetch(Path segment, long now) throws Exception {
    MapFile.Writer fetched = writer(segment, "crawl_fetch", CrawlDatum.class);
    MapFile.Writer contents = writer(segment, "content", Content.class);
    MapFile.Writer data = writer(segment, "parse_data", ParseData.class);
    MapFile.Writer texts = writer(segment, "parse_text", ParseText.class);
    SequenceFile.Writer parsed = SequenceFile.createWriter(conf,
        SequenceFile.Writer.file(new Path(segment, "crawl_parse/part-r-00000")),
        SequenceFile.Writer.keyClass(Text.class), SequenceFile.Writer.valueClass(CrawlDatum.class));
    for (Map.Entry<String, CrawlDatum> entry : fetchList(segment).entrySet()) {
      String url = entry.getKey();
      Text key = new Text(url);
      CrawlDatum datum = entry.getValue();
      byte status = outcome(url);
      datum.setStatus(status);
      datum.setFetchTime(now += 1000);
      datum.getMetaData().put(new Text("_pst_"), protocolStatus(status, url));
      datum.getMetaData().put(new Text("_rs_"), new IntWritable(hash(url) % 900));
      if (status == CrawlDatum.STATUS_FETCH_SUCCESS) {
        datum.getMetaData().put(new Text("Content-Type"), new Text("text/html"));
        writePage(key, datum, contents, data, texts, parsed);
      }
      fetched.append(key, datum);
    }
    fetched.close();
    contents.close();
    data.close();
    texts.close();
    parsed.close();
  }

  static ProtocolStatus protocolStatus(byte status, String url) throws Exception {
    switch (status) {
      case CrawlDatum.STATUS_FETCH_GONE: return new ProtocolStatus(ProtocolStatus.NOTFOUND, url);
      case CrawlDatum.STATUS_FETCH_RETRY: return new ProtocolStatus(ProtocolStatus.EXCEPTION, "timed out");
      case CrawlDatum.STATUS_FETCH_REDIR_TEMP: return new ProtocolStatus(ProtocolStatus.TEMP_MOVED, url + "?s");
      case CrawlDatum.STATUS_FETCH_REDIR_PERM: return new ProtocolStatus(ProtocolStatus.MOVED, url + "?new");
      default: return ProtocolStatus.STATUS_SUCCESS;
    }
  }

  void writePage(Text key, CrawlDatum datum, MapFile.Writer contents, MapFile.Writer data,
      MapFile.Writer texts, SequenceFile.Writer parsed) throws Exception {
    String url = key.toString();
    byte[] body = ("<title>" + url + "</title>" + text(url)).getBytes(StandardCharsets.UTF_8);
    Metadata headers = new Metadata();
    headers.add("Content-Type", "text/html; charset=utf-8");
    headers.add("nutch.crawl.score", String.valueOf(datum.getScore()));
    headers.add("_fst_", String.valueOf(datum.getStatus()));
    Content content = new Content();
    Values.setField(content, "url", url);
    Values.setField(content, "base", url);
    content.setContent(body);
    content.setContentType("text/html");
    content.setMetadata(headers);
    contents.append(key, content);
    byte[] signature = MessageDigest.getInstance("MD5").digest(text(url).getBytes(StandardCharsets.UTF_8));
    CrawlDatum signed = new CrawlDatum(CrawlDatum.STATUS_SIGNATURE, 0);
    signed.setSignature(signature);
    parsed.append(key, signed);
    Outlink[] links = links(url);
    for (Outlink link : links) {
      CrawlDatum linked = new CrawlDatum(CrawlDatum.STATUS_LINKED, 2_592_000);
      linked.setScore(datum.getScore() / links.length);
      parsed.append(new Text(link.getToUrl()), linked);
    }
    data.append(key, new ParseData(new ParseStatus(ParseStatus.SUCCESS), "Title of " + url, links, headers,
        new Metadata()));
    texts.append(key, new ParseText(text(url)));
  }

  MapFile.Writer writer(Path segment, String name, Class<? extends org.apache.hadoop.io.Writable> value)
      throws Exception {
    return Values.writer(new File(segment.toString(), name), "part-r-00000", value);
  }

  /** Returns the fetch list that Nutch would make, as JSON: (URL, score, due time). */
  List<String> nextChoice(long now, long topN) throws Exception {
    Path scratch = new Path(folder.getPath(), "tmp/next-" + now + "-" + topN);
    Path[] made = new Generator(conf).generate(crawlDb, scratch, 1, topN, now, false, false);
    List<String> chosen = new ArrayList<>();
    for (Map.Entry<String, CrawlDatum> entry : fetchList(made[0]).entrySet()) {
      chosen.add("\n[" + Dump.quote(entry.getKey()) + ", " + entry.getValue().getScore() + ", "
          + entry.getValue().getFetchTime() + "]");
    }
    return chosen;
  }
}
