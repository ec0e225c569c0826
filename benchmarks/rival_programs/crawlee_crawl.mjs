// Crawls as job.json says, with Crawlee for JavaScript; appends the URL of each page to pages.txt.

import { appendFileSync, readFileSync } from "node:fs";
import { CheerioCrawler, Configuration } from "crawlee";

const job = JSON.parse(readFileSync("job.json"));
// Resumes what a killed run left (CRAWLEE_PURGE_ON_START).
const configuration = new Configuration({ purgeOnStart: false, persistStorage: true });
const crawler = new CheerioCrawler(
  {
    respectRobotsTxtFile: { userAgent: "conformbot" },
    sameDomainDelaySecs: job.delay,
    maxConcurrency: job.concurrency,
    preNavigationHooks: [
      (_, options) => {
        options.headers = { ...options.headers, "user-agent": job.agent };
        options.useHeaderGenerator = false;
      },
    ],
    async requestHandler({ request, enqueueLinks }) {
      appendFileSync("pages.txt", `${request.loadedUrl}\n`);
      await enqueueLinks({ strategy: job.anywhere ? "all" : "same-hostname" });
    },
  },
  configuration,
);
await crawler.run(job.seeds);
