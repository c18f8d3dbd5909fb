#!/bin/sh
nohup python3 orders.py >orders.log 2>&1 &
echo $! >orders.pid
