#pragma once
// Objects as an API server sends them.
#include <string_view>

namespace kwatt::test {

inline constexpr std::string_view kPod = R"json({
 "apiVersion":"v1","kind":"Pod",
 "metadata":{"name":"web-7d9c-x2x4q","generateName":"web-7d9c-","namespace":"shop",
  "uid":"6f1d0c5e-9a56-4a52-8b5c-0c9d3c1f2a11","resourceVersion":"48213","generation":1,
  "creationTimestamp":"2026-11-20T20:00:00Z",
  "labels":{"app":"web","pod-template-hash":"7d9c"},
  "annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"false",
   "kwatt.dev/do-not-disrupt":"true","prometheus.io/scrape":"true",
   "kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"Pod\",\"x\":[\"}\"]}"},
  "ownerReferences":[{"apiVersion":"v1","kind":"Job","name":"other","uid":"j"},
   {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d9c","uid":"rs-uid","controller":true,
    "blockOwnerDeletion":true}],
  "managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",
   "time":"2026-11-20T20:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":
   {".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}}}}}]},
 "spec":{
  "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}},
   {"name":"scratch","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"]}}}},
   {"name":"cache","emptyDir":{"medium":"Memory","sizeLimit":"64Mi"}},
   {"name":"kube-api-access","projected":{"sources":[{"serviceAccountToken":{"path":"token"}}]}}],
  "initContainers":[{"name":"log","image":"log","restartPolicy":"Always",
   "resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}],
  "containers":[{"name":"web","image":"registry/web:1.2","command":["/web","--q=\"\\\""],
   "ports":[{"containerPort":8080,"protocol":"TCP"},
    {"containerPort":8443,"hostPort":8443,"hostIP":"10.0.0.1","protocol":"TCP"}],
   "resources":{"requests":{"cpu":"250m","memory":"256Mi","nvidia.com/gpu":"1"},
    "limits":{"memory":"512Mi","nvidia.com/gpu":"1"}}}],
  "overhead":{"cpu":"5m"},
  "nodeSelector":{"pool":"web"},"nodeName":"node14","priority":1000,
  "schedulerName":"default-scheduler",
  "affinity":{"nodeAffinity":{
    "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}],
    "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":
     [{"key":"zone","operator":"In","values":["a","b"]}]}]}},
   "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
    {"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"kubernetes.io/hostname"}]}},
  "topologySpreadConstraints":[
   {"maxSkew":2,"minDomains":3,"topologyKey":"topology.kubernetes.io/zone",
    "whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}},
    "matchLabelKeys":["pod-template-hash","absent"]},
   {"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway",
    "labelSelector":{"matchLabels":{"app":"web"}}}],
  "tolerations":[{"key":"dedicated","operator":"Equal","value":"web","effect":"NoSchedule"},
   {"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
    "tolerationSeconds":300}]},
 "status":{"phase":"Running","conditions":[
   {"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-11-20T20:00:09Z"},
   {"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-20T20:00:01Z"}],
  "hostIP":"10.0.0.14","podIPs":[{"ip":"10.244.0.7"}],
  "containerStatuses":[{"name":"web","ready":true,"restartCount":0,"started":true,
   "state":{"running":{"startedAt":"2026-11-20T20:00:05Z"}}}],"qosClass":"Burstable"}})json";

inline constexpr std::string_view kNode = R"json({
 "kind":"Node","apiVersion":"v1",
 "metadata":{"name":"node14","uid":"n-uid","resourceVersion":"77",
  "labels":{"topology.kubernetes.io/zone":"a","kubernetes.io/hostname":"node14"},
  "annotations":{"kwatt.dev/governor":"powersave",
   "kubectl.kubernetes.io/last-applied-configuration":"{}"}},
 "spec":{"podCIDR":"10.244.1.0/24","providerID":"lab://node14","unschedulable":true,
  "taints":[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule",
   "timeAdded":"2026-11-20T21:00:00Z"}]},
 "status":{"capacity":{"cpu":"32"},
  "allocatable":{"cpu":"31850m","memory":"128Gi","pods":"110","hugepages-1Gi":"0",
   "ephemeral-storage":"47093746742","nvidia.com/gpu":"4"},
  "conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ok",
   "lastHeartbeatTime":"2026-11-20T21:44:03Z","lastTransitionTime":"2026-11-20T20:00:00Z"}],
  "addresses":[{"type":"Hostname","address":"node14"},{"type":"InternalIP","address":"10.0.0.14"},
   {"type":"InternalIP","address":"fd00::14"}],
  "images":[{"names":["a@sha256:0","a:1"],"sizeBytes":5}],
  "nodeInfo":{"machineID":"","kubeletVersion":"v1.34.4"}}})json";

}  // namespace kwatt::test
