import os
import time

with open("worker-" + os.environ["INSTANCE"], "w") as f:
    f.write(os.environ["TOPIC"] + "\n")
while True:
    time.sleep(1)
