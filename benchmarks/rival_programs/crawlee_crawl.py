"""Crawls as job.json says, with Crawlee for Python; appends the URL of each page to pages.txt."""

import asyncio
import json
import pathlib
from urllib.parse import urlsplit

from crawlee import ConcurrencySettings, service_locator
from crawlee.configuration import Configuration
from crawlee.crawlers import BeautifulSoupCrawler, BeautifulSoupCrawlingContext
from crawlee.http_clients import HttpxHttpClient
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storages import RequestQueue

JOB = json.loads(pathlib.Path("job.json").read_text())


def note(url: str) -> None:
    with pathlib.Path("pages.txt").open("a") as file:
        file.write(url + "\n")


async def main() -> None:
    # Resumes what a killed run left: the guide "Request storage", purge_on_start.
    configuration = Configuration(storage_dir="storage", purge_on_start=False)
    service_locator.set_configuration(configuration)
    hosts = sorted({urlsplit(url).hostname for url in JOB["seeds"]})
    throttled = ThrottlingRequestManager(
        inner=await RequestQueue.open(), domains=hosts, request_manager_opener=RequestQueue.open
    )
    many, delay = JOB["concurrency"], JOB["delay"]
    crawler = BeautifulSoupCrawler(
        configuration=configuration,
        respect_robots_txt_file=True,
        request_manager=throttled,
        concurrency_settings=ConcurrencySettings(
            min_concurrency=1,
            desired_concurrency=1,
            max_concurrency=many,
            **({"max_tasks_per_minute": 60 / delay} if delay else {}),
        ),
        http_client=HttpxHttpClient(headers={"User-Agent": JOB["agent"]}, header_generator=None),
    )

    @crawler.router.default_handler
    async def handle(context: BeautifulSoupCrawlingContext) -> None:
        note(context.request.loaded_url)
        await context.enqueue_links(strategy="all" if JOB["anywhere"] else "same-hostname")

    await crawler.run(JOB["seeds"])


asyncio.run(main())
