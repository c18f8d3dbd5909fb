package agent

const scriptsRun = true
