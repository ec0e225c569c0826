package org.commoncrawl.webgraph.explore;

import it.unimi.dsi.fastutil.io.BinIO;
import it.unimi.dsi.util.ImmutableExternalPrefixMap;
import it.unimi.dsi.webgraph.ImmutableGraph;

/**
 * What pyccwebgraph calls of cc-webgraph. cc-webgraph is in no package registry, so this stands for
 * it: it opens the same files with the same classes of WebGraph and dsiutils.
 */
public class Graph {
  private final ImmutableGraph links;
  private final ImmutableGraph backlinks;
  private final ImmutableExternalPrefixMap names;

  public Graph(String base) throws Exception {
    links = ImmutableGraph.loadMapped(base);
    backlinks = ImmutableGraph.loadMapped(base + "-t");
    names = (ImmutableExternalPrefixMap) BinIO.loadObject(base + ".iepm");
  }

  public long vertexLabelToId(String label) {
    return names.getLong(label);
  }

  public String vertexIdToLabel(long id) {
    return names.list().get((int) id).toString();
  }

  public int[] successors(long id) {
    return links.successorArray((int) id);
  }

  public int[] predecessors(long id) {
    return backlinks.successorArray((int) id);
  }
}
