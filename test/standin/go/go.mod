module compute-domains/test/standin/go

go 1.19
