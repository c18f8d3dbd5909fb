import os
import time

with open("orders.settings", "w") as f:
    f.write(os.environ["MODE"] + " " + os.environ["HEAP"] + "\n")
while True:
    time.sleep(1)
