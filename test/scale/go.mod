module compute-domains/test/scale

go 1.21
