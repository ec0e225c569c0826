"""A parse filter: keeps the headings of each page, drops pages that have none."""


def headings(page):
    found = [heading.get_text(" ", strip=True) for heading in page.soup.find_all(["h1", "h2"])]
    if not found:
        page.drop("no_headings")
        return
    page.metadata["headings"] = " | ".join(found)
    page.links = [link for link in page.links if "login" not in link.url]
