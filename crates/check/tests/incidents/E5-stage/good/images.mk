tools:
	docker build -t builder -f tools.Dockerfile .
	docker build --build-context deps=../deps -f copies.Dockerfile .
