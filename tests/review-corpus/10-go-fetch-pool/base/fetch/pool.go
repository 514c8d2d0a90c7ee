// Package fetch gets many pages at once.
package fetch

import (
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Pool fetches with a bounded number of workers.
type Pool struct {
	client  *http.Client
	workers int

	mu    sync.Mutex
	sizes map[string]int
}

// NewPool makes a pool; zero workers mean one.
func NewPool(client *http.Client, workers int) *Pool {
	if workers < 1 {
		workers = 1
	}
	return &Pool{client: client, workers: workers, sizes: map[string]int{}}
}

// Sizes says how long each page is. Pages that fail are left out.
func (p *Pool) Sizes(urls []string) map[string]int {
	jobs := make(chan string)
	var group sync.WaitGroup
	for i := 0; i < p.workers; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for url := range jobs {
				p.one(url)
			}
		}()
	}
	for _, url := range urls {
		jobs <- url
	}
	close(jobs)
	group.Wait()
	return p.sizes
}

func (p *Pool) one(url string) {
	size, err := p.get(url)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes[url] = size
}

func (p *Pool) get(url string) (int, error) {
	response, err := p.client.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, response.Status)
	}
	body, err := io.ReadAll(response.Body)
	return len(body), err
}
