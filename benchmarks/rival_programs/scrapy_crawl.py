"""Crawls as job.json says, with Scrapy; appends the URL of each page to pages.txt."""

import json
import pathlib
from urllib.parse import urlsplit

from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor

JOB = json.loads(pathlib.Path("job.json").read_text())
SETTINGS = {
    # As `scrapy startproject` writes them, with the delay of the job.
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS_PER_DOMAIN": JOB["concurrency"],
    "DOWNLOAD_DELAY": JOB["delay"],
    "USER_AGENT": JOB["agent"],
    # Else the delay is 0.5 to 1.5 times what is set.
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    # docs/topics/jobs: a crawl that continues.
    "JOBDIR": "jobdir",
    "LOG_LEVEL": "INFO",
    "LOG_FILE": "scrapy.log",
    "TELNETCONSOLE_ENABLED": False,
}


class Pages(Spider):
    name = "pages"
    start_urls = JOB["seeds"]
    allowed_domains = None if JOB["anywhere"] else [urlsplit(u).hostname for u in JOB["seeds"]]
    extractor = LinkExtractor()

    def parse(self, response):
        with pathlib.Path("pages.txt").open("a") as file:
            file.write(response.url + "\n")
        if isinstance(response, TextResponse):
            for link in self.extractor.extract_links(response):
                yield response.follow(link, self.parse)


process = CrawlerProcess(SETTINGS)
process.crawl(Pages)
process.start()
