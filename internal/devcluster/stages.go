package devcluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The volumes of kwok's stages belong to a StorageClass and a provisioner of these names.
const (
	kwokStorageClass = "kwok-volume"
	provisioner      = "kwok.x-k8s.io/volume"
)

// writeStages writes kwok's configuration: the stages that its module ships, our own for pods in trouble, and where it
// reads the logs of pods.
func (c *Cluster) writeStages() error {
	files, err := filepath.Glob(filepath.Join(c.bins.kwok, "stage-*.yaml"))
	if err != nil {
		return err
	}
	var documents [][]byte
	for _, file := range files {
		stage, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		stage = bytes.ReplaceAll(stage, []byte(kwokStorageClass), []byte(StorageClass))
		if stage, err = sparingTrouble(stage); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		documents = append(documents, stage)
	}
	for _, trouble := range troubles() {
		stage, err := trouble.stage()
		if err != nil {
			return err
		}
		documents = append(documents, stage)
	}
	documents = append(documents, fmt.Appendf(nil, logsDocument, c.state.path(filePodLog)))
	if err := c.SetPodLog(""); err != nil {
		return err
	}
	return writeFile(c.state.path(fileStages), bytes.Join(documents, []byte("\n---\n")))
}

const logsDocument = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata:
  name: all
spec:
  logs:
  - logsFile: %[1]q
    previousLogsFile: %[1]q
`

// SetPodLog sets what every container of every pod answers when it is asked for its log, or for that of its last exit.
func (c *Cluster) SetPodLog(text string) error {
	// The format of a container runtime's log files.
	var log strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&log, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), strings.TrimSuffix(line, "\n"))
	}
	return writeFile(c.state.path(filePodLog), []byte(log.String()))
}
