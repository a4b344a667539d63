from jobs import run
