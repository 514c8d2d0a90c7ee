module example.org/crawler

go 1.22
