FROM golang:1.24
RUN go install example.com/tools/cmd/gen@v1.2.0
