require("./shared/log")
