import os
from bridge.client import connect
from routers import chat
