// Crawls as job.json says, with colly; appends the URL of each page to pages.txt.
package main

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
)

type job struct {
	Seeds       []string
	Delay       float64
	Concurrency int
	Anywhere    bool
	Agent       string
}

func main() {
	text, err := os.ReadFile("job.json")
	if err != nil {
		panic(err)
	}
	var wanted job
	if err := json.Unmarshal(text, &wanted); err != nil {
		panic(err)
	}
	pages, err := os.OpenFile("pages.txt", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer pages.Close()
	collector := colly.NewCollector(colly.UserAgent(wanted.Agent), colly.Async(true))
	collector.IgnoreRobotsTxt = false
	if !wanted.Anywhere {
		for _, seed := range wanted.Seeds {
			parsed, _ := url.Parse(seed)
			collector.AllowedDomains = append(collector.AllowedDomains, parsed.Hostname())
		}
	}
	// A rule is one queue for all hosts that it matches: each host of the seeds gets one of its own.
	delay := time.Duration(wanted.Delay * float64(time.Second))
	for _, seed := range wanted.Seeds {
		parsed, _ := url.Parse(seed)
		limit(collector, parsed.Hostname(), delay, wanted.Concurrency)
	}
	limit(collector, "*", delay, wanted.Concurrency)
	var lock sync.Mutex
	collector.OnResponse(func(response *colly.Response) {
		lock.Lock()
		defer lock.Unlock()
		pages.WriteString(response.Request.URL.String() + "\n")
	})
	collector.OnHTML("a[href]", func(element *colly.HTMLElement) {
		// Else a page is requested again for each fragment of its URL.
		link, _, _ := strings.Cut(element.Attr("href"), "#")
		element.Request.Visit(link)
	})
	for _, seed := range wanted.Seeds {
		collector.Visit(seed)
	}
	collector.Wait()
}

func limit(collector *colly.Collector, hosts string, delay time.Duration, many int) {
	if err := collector.Limit(&colly.LimitRule{DomainGlob: hosts, Delay: delay, Parallelism: many}); err != nil {
		panic(err)
	}
}
