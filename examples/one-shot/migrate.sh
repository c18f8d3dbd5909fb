#!/bin/sh
echo "migrated by $GOZZARD_NAME" >migrated
