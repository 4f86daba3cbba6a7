// Mirrors all Nodes and Pods of an API server with client-go's shared informers and prints as JSON
// what that has cost up to the moment both caches are complete: the yardstick of bench_store_load.
// Everything is client-go's default; for built-in kinds that means protobuf, compressed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const timeout = 5 * time.Minute

type cost struct {
	Nodes          int     `json:"nodes"`
	Pods           int     `json:"pods"`
	WallSeconds    float64 `json:"wall_seconds"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	ResidentBytes  int64   `json:"resident_bytes"`
	UntrimmedBytes int64   `json:"untrimmed_bytes"`
	PeakBytes      int64   `json:"peak_bytes"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "clientgo:", err)
		os.Exit(1)
	}
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "where the API server is")
	strip := flag.Bool("strip-managed-fields", false, "drop managedFields before objects are stored")
	flag.Parse()

	started := time.Now()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var options []informers.SharedInformerOption
	if *strip {
		options = append(options, informers.WithTransform(withoutManagedFields))
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	nodes := factory.Core().V1().Nodes().Informer()
	pods := factory.Core().V1().Pods().Informer()
	// The indexes that kwatt's store has, too.
	if err := pods.AddIndexers(cache.Indexers{"node": byNode, "owner": byOwner}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), nodes.HasSynced, pods.HasSynced) {
		return fmt.Errorf("the caches were not complete within %s", timeout)
	}
	result := cost{
		Nodes:          len(nodes.GetStore().ListKeys()),
		Pods:           len(pods.GetStore().ListKeys()),
		WallSeconds:    time.Since(started).Seconds(),
		CPUSeconds:     cpuSeconds(),
		UntrimmedBytes: processStatus("VmRSS"),
	}
	runtime.GC()
	debug.FreeOSMemory()
	result.ResidentBytes, result.PeakBytes = processStatus("VmRSS"), processStatus("VmHWM")
	runtime.KeepAlive(factory)
	return json.NewEncoder(os.Stdout).Encode(result)
}

func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func byNode(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}, nil
	}
	return nil, nil
}

func byOwner(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		for _, owner := range pod.OwnerReferences {
			if owner.Controller != nil && *owner.Controller {
				return []string{string(owner.UID)}, nil
			}
		}
	}
	return nil, nil
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
}

// processStatus is a figure of /proc/self/status that is given in kB, in bytes.
func processStatus(key string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, key+": %d kB", &kilobytes); err == nil {
			return kilobytes * 1024
		}
	}
	panic("/proc/self/status does not tell " + key)
}
