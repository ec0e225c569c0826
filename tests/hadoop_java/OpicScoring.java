import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.nutch.crawl.CrawlDatum;
import org.apache.nutch.crawl.Inlinks;
import org.apache.nutch.indexer.NutchDocument;
import org.apache.nutch.parse.Parse;
import org.apache.nutch.parse.ParseData;
import org.apache.nutch.protocol.Content;
import org.apache.nutch.scoring.ScoringFilter;

/** As Nutch's scoring-opic, which is a plug-in: the sort value is the score, links pass on their scores. */
public class OpicScoring implements ScoringFilter {
  private Configuration conf;

  @Override
  public void injectedScore(Text url, CrawlDatum datum) {}

  @Override
  public void initialScore(Text url, CrawlDatum datum) {
    datum.setScore(0);
  }

  @Override
  public float generatorSortValue(Text url, CrawlDatum datum, float initial) {
    return datum.getScore() * initial;
  }

  @Override
  public void passScoreBeforeParsing(Text url, CrawlDatum datum, Content content) {}

  @Override
  public void passScoreAfterParsing(Text url, Content content, Parse parse) {}

  @Override
  public CrawlDatum distributeScoreToOutlinks(Text url, ParseData data,
      Collection<Map.Entry<Text, CrawlDatum>> targets, CrawlDatum adjust, int links) {
    return adjust;
  }

  @Override
  public void updateDbScore(Text url, CrawlDatum old, CrawlDatum datum, List<CrawlDatum> inlinks) {
    float score = old == null ? datum.getScore() : old.getScore();
    for (CrawlDatum inlink : inlinks) {
      score += inlink.getScore();
    }
    datum.setScore(score);
  }

  @Override
  public float indexerScore(Text url, NutchDocument document, CrawlDatum db, CrawlDatum fetched, Parse parse,
      Inlinks inlinks, float initial) {
    return initial;
  }

  @Override
  public Configuration getConf() {
    return conf;
  }

  @Override
  public void setConf(Configuration conf) {
    this.conf = conf;
  }
}
