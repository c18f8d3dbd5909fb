#!/bin/sh
kill "$(cat orders.pid)"
