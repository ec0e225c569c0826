"""Twenty sites with known right values, and the rules that take them: shops, news, jobs, recipes.

Five have broken mark-up (``BROKEN``), three change their layout between rounds (``CHANGING``).
"""

import datetime
from decimal import Decimal

PAGES = 4  # of each site, besides the list of all
CHANGING = ("shop3.test", "news3.test", "jobs3.test")
BROKEN = ("shop4.test", "shop5.test", "news4.test", "jobs4.test", "recipes4.test")
UTC = datetime.UTC


def _german(amount):
    return f"{amount:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


def _product(n):
    return {
        "name": f"Kettle & pot no. {n}", "price": Decimal(f"{1000 * n + 234}.5{n}"), "in_stock": n % 2 == 0,
        "tags": [f"tag{n}", "kitchen"], "image": f"/img/{n}.jpg", "sku": f"K-{n:04}",
    }  # fmt: skip


def _article(n):
    return {
        "title": f"Council votes on plan {n}", "author": f"Ann Writer {n}",
        "published": datetime.datetime(2026, 3, n + 1, 10 + n, 30, tzinfo=UTC),
        "topics": [f"topic{n}", "city"],
    }  # fmt: skip


def _job(n):
    return {
        "title": f"Engineer {n} (all)", "company": f"Firm {n} Ltd", "salary": Decimal(50_000 + 1500 * n),
        "posted": datetime.datetime(2026, 4, n + 1, tzinfo=UTC), "remote": n % 2 == 1,
    }  # fmt: skip


def _recipe(n):
    return {
        "name": f"Soup {n}", "minutes": 15.0 + n, "rating": 4.5 - n / 4,
        "ingredients": [f"{n} onions", "salt", f"{2 * n} l water"], "method": f"## Method\n\nBoil for **{n}** hours.",
    }  # fmt: skip


# Each takes the values of a page; what a round changes comes second.
def _shop1(v, _):
    return (
        f"<h1>{_escape(v['name'])}</h1><p class=price>{_german(v['price'])} €</p><img src='..{v['image']}'>"
        f"<p class=sku>Art.-Nr. {v['sku']}</p>{_spans(v['tags'])}<b class=stock>{_yes(v['in_stock'])}</b>"
    )


def _shop2(v, _):  # no mark-up of its own: JSON-LD only
    return f"""<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Product",
        "name": "{v["name"]}", "image": "{v["image"]}", "sku": "{v["sku"]}", "keywords": {str(v["tags"]).replace("'", '"')},
        "offers": {{"@type": "Offer", "price": "{v["price"]}", "priceCurrency": "EUR",
        "availability": "{_yes(v["in_stock"])}"}}}}</script><h1>Shop</h1>"""


def _shop3(v, layout):
    price = (
        f"<span class=amount>€{v['price']:,.2f}</span>"
        if layout == 0
        else f"<data itemprop=cost value={v['price']}>"
    )
    return (
        f"<h1>{_escape(v['name'])}</h1>{price}<img src='{v['image']}'><i id=sku>{v['sku']}</i>{_spans(v['tags'])}"
        f"<meta itemprop=stock content={_yes(v['in_stock'])}>"
    )


def _shop4(v, _):  # unclosed elements, attributes without quotes, a stray end tag
    return (
        f"<div class=box><h1>{v['name']}</div></h1><table><tr><td>Price<td class=p>{v['price']} EUR<tr><td>No.<td>"
        f"{v['sku']}</table><ul><li class=t>{'<li class=t>'.join(v['tags'])}</ul><img src={v['image']}"
        f" alt='a><b>'><p data-stock={_yes(v['in_stock'])}>"
    )


def _shop5(v, _):  # two bodies, an unclosed comment, formatting that overlaps
    return (
        f"<body><body class=x><b><i>{_escape(v['name'])}</b></i><p>ab <s>99,99</s> nur <em>{_german(v['price'])}</em> EUR"
        f"<a href='{v['image']}'>Bild<p>{v['sku']}</p>{_spans(v['tags'])}<input name=stock value={_yes(v['in_stock'])}>"
        "<!-- <h1>not this</h1>"
    )


def _news1(v, _):
    return (
        f"<article><h1>{v['title']}</h1><p>By <a rel=author>{v['author']}</a>, "
        f"<time datetime={v['published']:%Y-%m-%dT%H:%M}Z>today</time></p>{_spans(v['topics'])}</article>"
    )


def _news2(v, _):
    return f"""<head><meta property="og:title" content="{v["title"]}"><meta name=author content="{v["author"]}">
        <meta property="article:published_time" content="{v["published"]:%Y-%m-%dT%H:%M:00+00:00}">
        <meta property="article:tag" content="{v["topics"][0]}"><meta property="article:tag" content="{v["topics"][1]}"></head>
        <h1>Other headline</h1>"""


def _news3(v, layout):
    when = f"{v['published']:%d.%m.%Y %H:%M}"
    head = (
        f"<div class=head>{v['title']}</div>"
        if layout == 0
        else f"<header><h2>{v['title']}</h2></header>"
    )
    return f"{head}<span class=by>{v['author']} | {when}</span>{_spans(v['topics'])}"


def _news4(v, _):  # nested articles, unclosed paragraphs
    return (
        f"<article><p class=t>{v['title']}<p class=a>{v['author']}<p>{v['published']:%B %d, %Y at %H:%M}"
        f"<article><p class=t>Another article</article><div>{_spans(v['topics'])}"
    )


def _news5(v, _):
    return f"""<article itemscope itemtype="https://schema.org/NewsArticle"><h1 itemprop=headline>{v["title"]}</h1>
        <span itemprop=author itemscope itemtype="https://schema.org/Person"><b itemprop=name>{v["author"]}</b></span>
        <time itemprop=datePublished datetime="{v["published"]:%Y-%m-%dT%H:%MZ}">then</time>
        <i itemprop=keywords>{v["topics"][0]}</i><i itemprop=keywords>{v["topics"][1]}</i></article>"""


def _jobs1(v, _):
    return (
        f"<h1>{v['title']}</h1><dl><dt>Firm<dd>{v['company']}<dt>Pay<dd>£{v['salary']:,} a year<dt>Since"
        f"<dd>{v['posted']:%d %B %Y}<dt>Remote<dd>{_yes(v['remote'])}</dl>"
    )


def _jobs2(v, _):
    return f"""<script type="application/ld+json">{{"@graph": [{{"@type": "WebSite", "name": "x"}},
        {{"@type": "JobPosting", "title": "{v["title"]}", "datePosted": "{v["posted"]:%Y-%m-%d}",
        "hiringOrganization": {{"name": "{v["company"]}"}}, "jobLocationType": "{_yes(v["remote"])}",
        "baseSalary": {{"value": {{"value": {v["salary"]}}}}}}}]}}</script>"""


def _jobs3(v, layout):
    pay = (
        f"<p id=pay>{v['salary']} USD</p>"
        if layout == 0
        else f"<p class=wage>$ {v['salary']:,}</p>"
    )
    return (
        f"<h1>{v['title']}</h1><h2>{v['company']}</h2>{pay}<p>posted {v['posted']:%m/%d/%Y}</p>"
        f"<p class=remote>{_yes(v['remote'])}</p>"
    )


def _jobs4(v, _):  # a table whose rows end nowhere, and text outside of it
    return (
        f"<table>{v['title']}<tr><th>{v['company']}<td>{v['salary']}.00<td>{v['posted']:%Y.%m.%d}<td>"
        f"{_yes(v['remote'])}</table>"
    )


def _jobs5(v, _):
    return (
        f"<div data-title='{v['title']}' data-firm='{v['company']}' data-pay='{v['salary']}' "
        f"data-posted='{v['posted']:%Y-%m-%d}' data-remote={_yes(v['remote'])}></div>"
    )


def _recipes1(v, _):
    return f"<h1>{v['name']}</h1><p>Ready in {v['minutes']:g} min. Rated {v['rating']:g} of 5</p>{_list(v)}{_method(v)}"


def _recipes2(v, _):
    return f"""<div itemscope itemtype="http://schema.org/Recipe"><h1 itemprop=name>{v["name"]}</h1>
        <span itemprop=totalTime content="{v["minutes"]:g} minutes"></span><b itemprop=ratingValue>{v["rating"]:g}</b>
        {"".join(f"<p itemprop=recipeIngredient>{each}</p>" for each in v["ingredients"])}</div>{_method(v)}"""


def _recipes3(v, _):
    return (
        f"<section><h2>{v['name']}</h2><span>{v['minutes']:g} min</span><span>{v['rating']:g}</span>{_list(v)}"
        f"</section>{_method(v)}"
    )


def _recipes4(v, _):  # list items that are not closed, a title in the wrong place
    return (
        f"<ul class=in><li>{'<li>'.join(v['ingredients'])}<p></ul><title>{v['name']}</title><b>{v['minutes']:g}</b> min"
        f"<b>{v['rating']:g}</b> stars{_method(v)}"
    )


def _escape(text):
    return text.replace("&", "&amp;")


def _yes(value):
    return "yes" if value else "no"


def _spans(words):
    return "".join(f"<span class=tag>{word}</span>" for word in words)


def _list(v):
    return f"<ul>{''.join(f'<li>{each}</li>' for each in v['ingredients'])}</ul>"


def _method(v):
    hours = v["method"].partition("**")[2].partition("**")[0]
    return f"<div class=method><h2>Method</h2><p>Boil for <b>{hours}</b> hours.</p></div>"


_KINDS = {"shop": _product, "news": _article, "jobs": _job, "recipes": _recipe}
_TEMPLATES = (
    *(_shop1, _shop2, _shop3, _shop4, _shop5, _news1, _news2, _news3, _news4, _news5),
    *(_jobs1, _jobs2, _jobs3, _jobs4, _jobs5, _recipes1, _recipes2, _recipes3, _recipes4),
)


def pages(layout=0):
    """Returns (HTML, rows) by URL: 19 sites with pages of one record, and one with lists of records.

    Args:
        layout: 0, or 1 after the change of three sites.
    """
    made = {}
    for template in _TEMPLATES:
        name = template.__name__[1:]
        kind, host = name[:-1], f"{name}.test"
        for n in range(1, PAGES + 1):
            row = dict(_KINDS[kind](n))
            html = f"<!doctype html><title>{name}</title>{template(row, layout)}<a href=/item/{n % PAGES + 1}>n</a>"
            if "image" in row:
                row["image"] = f"http://{host}{row['image']}"
            made[f"http://{host}/item/{n}"] = html, [row]
        links = "".join(f"<a href=/item/{n}>{n}</a>" for n in range(1, PAGES + 1))
        made[f"http://{host}/"] = f"<title>{name}</title>{links}", []
    rows = [{"name": p["name"], "price": p["price"]} for p in map(_product, range(1, 9))]
    items = "".join(
        f"<li class=item><b>{_escape(row['name'])}</b><i>{row['price']} €</i><li class=item><b>Advert</b>"
        for row in rows
    )
    made["http://shop6.test/"] = f"<title>shop6</title><ul>{items}</ul>", rows
    return made


# As a user writes it. After the change of layouts, each of the three sites needs one more source.
RULES = r"""
name = "sites"

[[rule]]
name = "shop1"
host = "shop1.test"
url = "/item/"
[rule.fields]
name = "css:h1"
price = {css = ".price", type = "decimal"}
image = {css = "img::attr(src)", type = "url"}
sku = {css = ".sku", regex = "Art.-Nr. (\\S+)"}
tags = {css = ".tag", type = "list"}
in_stock = {css = ".stock", type = "bool"}

[[rule]]
name = "shop2"
host = "shop2.test"
url = "/item/"
[rule.fields]
name = "json-ld:Product.name"
price = {first_of = ["json-ld:Product.offers.price"], type = "decimal"}
image = {first_of = ["schema:Product.image"], type = "url"}
sku = "json-ld:Product.sku"
tags = {first_of = ["json-ld:Product.keywords"], type = "list"}
in_stock = {first_of = ["json-ld:Product.offers.availability"], type = "bool"}

[[rule]]
name = "shop3"
host = "shop3.test"
url = "/item/"
[rule.fields]
name = "css:h1"
price = {css = ".amount", type = "decimal"}  # shop3
image = {css = "img::attr(src)", type = "url"}
sku = "css:#sku"
tags = {css = ".tag", type = "list"}
in_stock = {css = "[itemprop=stock]::attr(content)", type = "bool"}

[[rule]]
name = "shop4"
host = "shop4.test"
url = "/item/"
[rule.fields]
name = "css:h1"
price = {css = "td.p", type = "decimal"}
image = {css = "img::attr(src)", type = "url"}
sku = "css:tr:nth-child(2) td:nth-child(2)"
tags = {css = "li.t", type = "list"}
in_stock = {css = "[data-stock]::attr(data-stock)", type = "bool"}

[[rule]]
name = "shop5"
host = "shop5.test"
url = "/item/"
[rule.fields]
name = "css:body > b"
price = {css = "p > em", type = "decimal"}
image = {css = "a::attr(href)", type = "url"}
sku = {css = "p", regex = "^(K-\\d+)"}
tags = {css = ".tag", type = "list"}
in_stock = {css = "input[name=stock]::attr(value)", type = "bool"}

[[rule]]
name = "shop6"
host = "shop6.test"
each = "li.item"
[rule.fields]
name = {css = "b", required = true}
price = {css = "i", type = "decimal", required = true}

[[rule]]
name = "news1"
host = "news1.test"
url = "/item/"
[rule.fields]
title = "css:article h1"
author = "css:a[rel=author]"
published = {css = "time::attr(datetime)", type = "date"}
topics = {css = ".tag", type = "list"}

[[rule]]
name = "news2"
host = "news2.test"
url = "/item/"
[rule.fields]
title = "meta:og:title"
author = "meta:author"
published = {first_of = ["meta:article:published_time"], type = "date"}
topics = {first_of = ["meta:article:tag"], type = "list"}

[[rule]]
name = "news3"
host = "news3.test"
url = "/item/"
[rule.fields]
title = {css = ".head"}  # news3
author = {css = ".by", regex = "(.*) \\|"}
published = {css = ".by", regex = "\\| (.*)", type = "date", date_order = "dmy"}
topics = {css = ".tag", type = "list"}

[[rule]]
name = "news4"
host = "news4.test"
url = "/item/"
[rule.fields]
title = "css:p.t"
author = "css:p.a"
published = {css = "p.a + p::text", type = "date"}
topics = {css = ".tag", type = "list"}

[[rule]]
name = "news5"
host = "news5.test"
url = "/item/"
[rule.fields]
title = "microdata:NewsArticle.headline"
author = "microdata:NewsArticle.author.name"
published = {first_of = ["microdata:NewsArticle.datePublished"], type = "date"}
topics = {first_of = ["microdata:NewsArticle.keywords"], type = "list"}

[[rule]]
name = "jobs1"
host = "jobs1.test"
url = "/item/"
[rule.fields]
title = "css:h1"
company = "xpath://dt[contains(., 'Firm')]/following-sibling::dd[1]"
salary = {xpath = "//dt[contains(., 'Pay')]/following-sibling::dd[1]", type = "decimal"}
posted = {xpath = "//dt[contains(., 'Since')]/following-sibling::dd[1]/text()", type = "date"}
remote = {css = "dd:last-child", type = "bool"}

[[rule]]
name = "jobs2"
host = "jobs2.test"
url = "/item/"
[rule.fields]
title = "json-ld:JobPosting.title"
company = "json-ld:JobPosting.hiringOrganization.name"
salary = {first_of = ["json-ld:JobPosting.baseSalary.value.value"], type = "decimal"}
posted = {first_of = ["json-ld:JobPosting.datePosted"], type = "date"}
remote = {first_of = ["json-ld:JobPosting.jobLocationType"], type = "bool"}

[[rule]]
name = "jobs3"
host = "jobs3.test"
url = "/item/"
[rule.fields]
title = "css:h1"
company = "css:h2"
salary = {css = "#pay", type = "decimal"}  # jobs3
posted = {css = "p", regex = "posted (\\S+)", type = "date", date_order = "mdy"}
remote = {css = ".remote", type = "bool"}

[[rule]]
name = "jobs4"
host = "jobs4.test"
url = "/item/"
[rule.fields]
title = {css = "body::text"}
company = "css:th"
salary = {css = "th + td", type = "decimal"}
posted = {css = "th + td + td", type = "date"}
remote = {css = "td:last-child", type = "bool"}

[[rule]]
name = "jobs5"
hosts = ["jobs5.test", "*.jobs5.test"]
url = "/item/"
[rule.fields]
title = "css:::attr(data-title)"
company = "css:div::attr(data-firm)"
salary = {css = "div::attr(data-pay)", type = "decimal"}
posted = {css = "div::attr(data-posted)", type = "date"}
remote = {css = "div::attr(data-remote)", type = "bool"}

[[rule]]
name = "recipes1"
host = "recipes1.test"
url = "/item/"
[rule.fields]
name = "css:h1"
minutes = {css = "p", regex = "(\\d+) min", type = "number"}
rating = {css = "p", regex = "Rated (\\S+)", type = "number"}
ingredients = {css = "ul > li", type = "list"}
method = {css = ".method", type = "markdown"}

[[rule]]
name = "recipes2"
host = "recipes2.test"
url = "/item/"
[rule.fields]
name = "schema:Recipe.name"
minutes = {css = "[itemprop=totalTime]::attr(content)", type = "number"}
rating = {first_of = ["schema:Recipe.ratingValue"], type = "number"}
ingredients = {first_of = ["schema:Recipe.recipeIngredient"], type = "list"}
method = {css = ".method", type = "markdown"}

[[rule]]
name = "recipes3"
host = "recipes3.test"
url = "/item/"
[rule.fields]
name = "css:section h2"
minutes = {css = "span", type = "number"}
rating = {css = "span + span", type = "number"}
ingredients = {css = "section li", type = "list"}
method = {css = ".method", type = "markdown"}

[[rule]]
name = "recipes4"
host = "recipes4.test"
url = "/item/"
[rule.fields]
name = {css = "ul ~ title", first_of = ["css:ul title"]}
minutes = {css = "ul ~ b", type = "number"}
rating = {css = "b + b", type = "number"}
ingredients = {css = ".in > li", type = "list"}
method = {css = ".method", type = "markdown"}
"""

REPAIRS = {
    '".amount", type = "decimal"}  # shop3':
        '".amount", type = "decimal", first_of = ["css:[itemprop=cost]::attr(value)"]}',
    '{css = ".head"}  # news3': '{css = ".head", first_of = ["css:header h2"]}',
    '"#pay", type = "decimal"}  # jobs3': '"#pay", type = "decimal", first_of = ["css:.wage"]}',
}  # fmt: skip


def repaired_rules():
    """Returns the rules for both layouts."""
    text = RULES
    for before, after in REPAIRS.items():
        assert before in text
        text = text.replace(before, after)
    return text
