const http = require('http');
const log = require('./log');
