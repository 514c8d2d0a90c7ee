module example.org/flags

go 1.22
