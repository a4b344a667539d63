FROM python-builder AS builder
COPY . /app

FROM base
COPY --from=builder /app /app
CMD ["worker"]
