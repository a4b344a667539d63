from jobs.run import main
