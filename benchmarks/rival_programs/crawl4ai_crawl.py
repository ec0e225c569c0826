"""Crawls as job.json says, with crawl4ai and without a browser; appends the URL of each page to pages.txt."""

import asyncio
import json
import pathlib
from urllib.parse import urlsplit

from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig, HTTPCrawlerConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from crawl4ai.deep_crawling import BFSDeepCrawlStrategy

JOB = json.loads(pathlib.Path("job.json").read_text())


def note(url: str) -> None:
    with pathlib.Path("pages.txt").open("a") as file:
        file.write(url + "\n")


async def crawl(crawler: AsyncWebCrawler, seed: str) -> None:
    # docs/core/deep-crawling: crash recovery.
    state = pathlib.Path(f"state-{urlsplit(seed).hostname}.json")

    async def save(new: dict) -> None:
        state.with_suffix(".new").write_text(json.dumps(new))
        state.with_suffix(".new").replace(state)

    config = CrawlerRunConfig(
        check_robots_txt=True,
        mean_delay=JOB["delay"],
        max_range=0,
        semaphore_count=JOB["concurrency"],
        cache_mode=CacheMode.BYPASS,
        stream=True,
        verbose=False,
        deep_crawl_strategy=BFSDeepCrawlStrategy(
            max_depth=50,
            include_external=JOB["anywhere"],
            on_state_change=save,
            resume_state=json.loads(state.read_text()) if state.exists() else None,
        ),
    )
    async for result in await crawler.arun(seed, config=config):
        if result.success:
            note(result.redirected_url or result.url)


async def main() -> None:
    http = HTTPCrawlerConfig(headers={"User-Agent": JOB["agent"]})
    strategy = AsyncHTTPCrawlerStrategy(browser_config=http)
    # robots.txt is asked for the name that a browser would send.
    name = BrowserConfig(user_agent=JOB["agent"])
    async with AsyncWebCrawler(crawler_strategy=strategy, config=name) as crawler:
        await asyncio.gather(*(crawl(crawler, seed) for seed in JOB["seeds"]))


asyncio.run(main())
