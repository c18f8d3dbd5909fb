#!/bin/sh
date >>report.log
