"""Feeds as well-known programs write them, shortened: what is in each, and where it differs."""

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
HERE = "http://example.com"

WORDPRESS = f"""{HEAD}<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:wfw="http://wellformedweb.org/CommentAPI/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:atom="http://www.w3.org/2005/Atom" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
 xmlns:slash="http://purl.org/rss/1.0/modules/slash/">
<channel><title>A blog</title><atom:link href="{HERE}/feed/" rel="self" type="application/rss+xml" />
<link>{HERE}</link><description>Just another site</description>
<lastBuildDate>Fri, 02 Jan 2026 00:00:00 +0000</lastBuildDate><language>en-US</language>
<sy:updatePeriod>hourly</sy:updatePeriod><generator>https://wordpress.org/?v=6.4</generator>
<image><url>{HERE}/icon.png</url><title>An image</title><link>{HERE}/image</link></image>
<item><title>Tea &#038; cake &#233; a post</title><link>{HERE}/2026/01/post/</link>
<comments>{HERE}/2026/01/post/#respond</comments><dc:creator><![CDATA[Ann]]></dc:creator>
<pubDate>Fri, 02 Jan 2026 00:00:00 +0000</pubDate><category><![CDATA[Food]]></category>
<category><![CDATA[Tea & more]]></category><guid isPermaLink="false">{HERE}/?p=7</guid>
<description><![CDATA[<p>Short &#8230; <a href="{HERE}/more">more</a></p>]]></description>
<content:encoded><![CDATA[<p>All of <b>it</b></p>]]></content:encoded>
<wfw:commentRss>{HERE}/2026/01/post/feed/</wfw:commentRss><slash:comments>3</slash:comments>
</item></channel></rss>"""

BLOGGER = f"""{HEAD}<?xml-stylesheet href="http://www.blogger.com/styles/atom.css" type="text/css"?>
<feed xmlns='http://www.w3.org/2005/Atom' xmlns:openSearch='http://a9.com/-/spec/opensearchrss/1.0/'
 xmlns:blogger='http://schemas.google.com/blogger/2008' xmlns:thr='http://purl.org/syndication/thread/1.0'>
<id>tag:blogger.com,1999:blog-7</id><updated>2026-01-02T00:00:00.000-08:00</updated>
<title type='text'>A blog</title><subtitle type='html'>Just &lt;i&gt;another&lt;/i&gt; site</subtitle>
<link rel='http://schemas.google.com/g/2005#feed' type='application/atom+xml' href='{HERE}/feeds/posts/default'/>
<link rel='self' type='application/atom+xml' href='{HERE}/feeds/posts/default'/>
<link rel='alternate' type='text/html' href='{HERE}/'/><link rel='hub' href='http://pubsubhubbub.appspot.com/'/>
<link rel='next' type='application/atom+xml' href='{HERE}/feeds/posts/default?start-index=26&amp;max-results=25'/>
<author><name>Ann</name><uri>http://www.blogger.com/profile/7</uri><email>noreply@blogger.com</email></author>
<entry><id>tag:blogger.com,1999:blog-7.post-1</id><published>2026-01-01T00:00:00.000Z</published>
<updated>2026-01-02T00:00:00.000Z</updated>
<category scheme='http://www.blogger.com/atom/ns#' term='Food'/>
<title type='text'>Tea &lt;3</title><content type='html'>&lt;p&gt;All of it&lt;/p&gt;</content>
<link rel='replies' type='application/atom+xml' href='{HERE}/feeds/1/comments/default' title='Post Comments'/>
<link rel='edit' type='application/atom+xml' href='http://www.blogger.com/feeds/7/posts/default/1'/>
<link rel='self' type='application/atom+xml' href='http://www.blogger.com/feeds/7/posts/default/1'/>
<link rel='alternate' type='text/html' href='{HERE}/2026/01/post.html' title='Tea'/>
<author><name>Bob</name><uri>http://www.blogger.com/profile/8</uri></author></entry></feed>"""

PODCAST = f"""{HEAD}<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"
 xmlns:googleplay="http://www.google.com/schemas/play-podcasts/1.0">
<channel><title>A show</title><itunes:subtitle>In short</itunes:subtitle><link>{HERE}/show</link>
<itunes:owner><itunes:name>Owner</itunes:name></itunes:owner>
<itunes:category text="Arts"><itunes:category text="Food"/></itunes:category>
<item><itunes:title>Episode</itunes:title><itunes:author>Ann</itunes:author>
<itunes:summary>About tea</itunes:summary><guid>{HERE}/show/1</guid>
<enclosure url="{HERE}/1.mp3" length="7" type="audio/mpeg"/>
<pubDate>Fri, 02 Jan 2026 00:00:00 GMT</pubDate></item></channel></rss>"""

YOUTUBE = f"""{HEAD}<feed xmlns:yt="http://www.youtube.com/xml/schemas/2015"
 xmlns:media="http://search.yahoo.com/mrss/" xmlns="http://www.w3.org/2005/Atom">
<link rel="self" href="{HERE}/feeds/videos.xml?channel_id=7"/><id>yt:channel:7</id>
<title>A channel</title><link rel="alternate" href="{HERE}/channel/7"/>
<author><name>Ann</name><uri>{HERE}/channel/7</uri></author><published>2020-01-01T00:00:00+00:00</published>
<entry><id>yt:video:1</id><yt:videoId>1</yt:videoId><title>Tea</title>
<link rel="alternate" href="{HERE}/watch?v=1"/><author><name>Ann</name></author>
<published>2026-01-01T00:00:00+00:00</published><updated>2026-01-02T00:00:00+00:00</updated>
<media:group><media:title>Tea again</media:title>
<media:content url="{HERE}/v/1?version=3" type="application/x-shockwave-flash"/>
<media:thumbnail url="{HERE}/vi/1.jpg"/><media:description>How to make it
https://example.com/shop</media:description></media:group></entry></feed>"""

ATOM_XHTML = f"""{HEAD}<feed xmlns="http://www.w3.org/2005/Atom" xml:base="{HERE}/blog/" xml:lang="de">
<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A <b>blog</b></div></title>
<link href="./"/><entry xml:base="2026/"><title>AT&amp;T</title><link href="post"/>
<id>urn:uuid:1</id><updated>2026-01-02T00:00:00Z</updated>
<source><title>Elsewhere</title><link href="http://other.example/"/></source>
<content type="xhtml"><xhtml:div xmlns:xhtml="http://www.w3.org/1999/xhtml"><xhtml:p>All of
<xhtml:a href="x.html?a=1&amp;b=2">it</xhtml:a> &lt;3</xhtml:p></xhtml:div></content></entry></feed>"""

RDF = f"""{HEAD}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="{HERE}/rss"><title>A site</title><link>{HERE}/</link>
<description>Of news</description><items><rdf:Seq><rdf:li resource="{HERE}/1"/></rdf:Seq></items></channel>
<image rdf:about="{HERE}/i.png"><title>An image</title><url>{HERE}/i.png</url><link>{HERE}/</link></image>
<item rdf:about="{HERE}/1"><title>One</title><link>{HERE}/1</link><description>First</description>
<dc:date>2026-01-02T00:00:00Z</dc:date><dc:creator>Ann</dc:creator><dc:subject>Food</dc:subject></item>
<textinput rdf:about="{HERE}/s"><title>Search</title><name>q</name><link>{HERE}/s</link></textinput>
</rdf:RDF>"""

JSON_FEED = """{"version": "https://jsonfeed.org/version/1.1", "title": "A blog",
 "home_page_url": "http://example.com/", "feed_url": "http://example.com/feed.json",
 "description": "Of tea", "language": "en", "next_url": "/feed.json?page=2",
 "items": [{"id": "7", "url": "/post", "title": "Tea \\ud83c\\udf75", "content_html": "<p>All of <b>it</b></p>",
 "date_published": "2026-01-01T00:00:00Z", "date_modified": "2026-01-02T00:00:00Z",
 "authors": [{"name": "Ann"}, {"name": "Bob"}], "tags": ["food", "tea"]}]}"""

JSON_FEED_1 = """{"version": "https://jsonfeed.org/version/1", "title": "Links", "author": {"name": "Ann"},
 "items": [{"id": "http://example.com/7", "content_text": "1 < 2", "date_published": "2026-01-02"},
 {"id": 8, "external_url": "http://other.example/"}]}"""
