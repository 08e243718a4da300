module compute-domains/test/cluster/front

go 1.21
