#!/bin/sh
echo "$PLACE $TIER $INSTANCE" >"front-$1.settings"
sleep 100000 &
echo $! >"front-$1.pid"
