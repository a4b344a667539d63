// Command client exercises an API server as a controller does: a shared informer, leader election,
// server-side apply, and the discovery and OpenAPI documents that tools read.
//
// It takes the path of a kubeconfig, prints one line per step and fails at the first that does not work.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// How long any step may take.
const patience = 60 * time.Second

const namespace = "default"

func main() {
	if len(os.Args) != 2 {
		fail("usage", fmt.Errorf("client KUBECONFIG"))
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check("kubeconfig", err)
	client, err := kubernetes.NewForConfig(config)
	check("client", err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	documents(client)
	informer(ctx, client)
	lead(ctx, client)
}

// documents reads discovery and OpenAPI v2 as client-go asks for them: aggregated, and in protobuf.
func documents(client *kubernetes.Clientset) {
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	check("discovery", err)
	document, err := client.Discovery().OpenAPISchema()
	check("openapi", err)
	definitions := document.GetDefinitions().GetAdditionalProperties()
	if len(lists) < 10 || len(definitions) < 100 {
		fail("documents", fmt.Errorf("%d groups, %d definitions", len(lists), len(definitions)))
	}
	fmt.Println("documents")
}

// informer follows what happens to ConfigMaps.
func informer(ctx context.Context, client *kubernetes.Clientset) {
	events := make(chan string, 64)
	told := func(kind string, object any) {
		if tombstone, gone := object.(cache.DeletedFinalStateUnknown); gone {
			object = tombstone.Obj
		}
		if configMap, ok := object.(*corev1.ConfigMap); ok && configMap.Name == "followed" {
			events <- kind + " " + configMap.Data["step"]
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	shared := factory.Core().V1().ConfigMaps().Informer()
	_, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { told("added", object) },
		UpdateFunc: func(_, object any) { told("updated", object) },
		DeleteFunc: func(object any) { told("deleted", object) },
	})
	check("informer", err)
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), shared.HasSynced) {
		fail("informer", fmt.Errorf("the cache does not sync"))
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	for _, step := range []string{"1", "2"} {
		config := applyv1.ConfigMap("followed", namespace).WithData(map[string]string{"step": step})
		_, err := maps.Apply(ctx, config, metav1.ApplyOptions{FieldManager: "client", Force: true})
		check("apply", err)
	}
	check("delete", maps.Delete(ctx, "followed", metav1.DeleteOptions{}))
	for _, expected := range []string{"added 1", "updated 2", "deleted 2"} {
		select {
		case found := <-events:
			if found != expected {
				fail("informer", fmt.Errorf("%s instead of %s", found, expected))
			}
		case <-ctx.Done():
			fail("informer", fmt.Errorf("no %s", expected))
		}
	}
	fmt.Println("informer")
}

// lead wins an election and gives the lease back.
func lead(ctx context.Context, client *kubernetes.Clientset) {
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "client", Namespace: namespace},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "client-1"},
	}
	ctx, stop := context.WithCancel(ctx)
	led := false
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		ReleaseOnCancel: true,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led = true; stop() },
			OnStoppedLeading: func() {},
		},
	})
	if !led {
		fail("lead", fmt.Errorf("the election was not won"))
	}
	fmt.Println("lead")
}

func check(step string, err error) {
	if err != nil {
		fail(step, err)
	}
}

func fail(step string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", step, err)
	os.Exit(1)
}
