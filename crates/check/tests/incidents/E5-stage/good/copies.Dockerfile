FROM alpine:3.22
COPY --from=builder /go/bin/gen /usr/local/bin/gen
COPY --from=deps /lists /lists
CMD ["gen"]
