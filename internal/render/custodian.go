package render

import (
	"fmt"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Where a Custodian finds its files, in every pod that has one.
const (
	custodianConfigDir = "/etc/jr2/custodian/config"
	custodianValuesDir = "/etc/jr2/custodian/values"
)

// custodianScript swaps the stand-in of the pod's own token on the way to the Orchestrator. The file is read per request, because
// the kubelet replaces it when the token changes.
const custodianScript = `-- The Custodian swaps the stand-in of this pod's token for the token. Nothing else is held by this version.
local STAND_IN = "` + config.StandInPrefix + names.SandboxTokenName + `"
local FILE = "` + custodianValuesDir + "/" + names.SandboxTokenName + `"

local function token()
  local file = io.open(FILE, "r")
  if file == nil then
    return nil
  end
  local value = file:read("*l")
  file:close()
  return value
end

function envoy_on_request(handle)
  local headers = handle:headers()
  if headers:get("authorization") ~= "Bearer " .. STAND_IN then
    return
  end
  local value = token()
  if value == nil or value == "" then
    handle:respond({ [":status"] = "503" }, "custodian: the token of this pod is not there\n")
    return
  end
  headers:replace("authorization", "Bearer " .. value)
end
`

type object = map[string]any

// custodianBootstrap is the Envoy configuration of a Custodian: a health listener for the kubelet, and a control listener on the
// loopback address that leads to the Orchestrator and nowhere else. There is no admin listener.
func custodianBootstrap(namespace string) string {
	router := object{"name": "envoy.filters.http.router", "typed_config": object{
		"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}
	swap := object{"name": "envoy.filters.http.lua", "typed_config": object{
		"@type":               "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
		"default_source_code": object{"filename": custodianConfigDir + "/" + names.ScriptKey}}}
	health := object{"match": object{"path": "/healthz"}, "direct_response": object{"status": 200}}
	// No timeout: the Orchestrator answers some requests when a person has decided.
	control := object{"match": object{"prefix": "/"}, "route": object{"cluster": "orchestrator", "timeout": "0s"}}
	return jsonText(object{
		"node": object{"id": "custodian", "cluster": "jr2"},
		"static_resources": object{
			"listeners": []object{
				listener("health", "0.0.0.0", names.CustodianHealthPort, health, router),
				listener("control", "127.0.0.1", names.CustodianControlPort, control, swap, router),
			},
			"clusters": []object{{
				"name": "orchestrator", "type": "STRICT_DNS", "connect_timeout": "5s",
				"load_assignment": object{"cluster_name": "orchestrator", "endpoints": []object{{"lb_endpoints": []object{{
					"endpoint": object{"address": socket(fmt.Sprintf("%s.%s.svc", names.Orchestrator, namespace), names.OrchestratorPort)}}}}}},
			}},
		},
	})
}

func listener(name, address string, port int, route object, filters ...object) object {
	manager := object{
		"@type":        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":  name,
		"route_config": object{"name": name, "virtual_hosts": []object{{"name": name, "domains": []string{"*"}, "routes": []object{route}}}},
		"http_filters": filters,
		// Streams may be silent for as long as an agent thinks.
		"stream_idle_timeout": "0s",
	}
	return object{"name": name, "address": socket(address, port), "filter_chains": []object{{
		"filters": []object{{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}}}}}
}

func socket(address string, port int) object {
	return object{"socket_address": object{"address": address, "port_value": port}}
}

// custodianContainer runs Envoy beside a Harness, as a native sidecar: it starts first and outlives the Harness's drain.
func custodianContainer(in Input) corev1.Container {
	return corev1.Container{
		Name:            names.CustodianContainer,
		Image:           in.Kit.Custodian,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"-c", custodianConfigDir + "/" + names.BootstrapKey, "--concurrency", "1", "--disable-hot-restart"},
		RestartPolicy:   ptr(corev1.ContainerRestartPolicyAlways),
		Ports:           []corev1.ContainerPort{{Name: "health", ContainerPort: names.CustodianHealthPort, Protocol: corev1.ProtocolTCP}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "custodian-values", MountPath: custodianValuesDir, ReadOnly: true},
			{Name: "custodian-config", MountPath: custodianConfigDir, ReadOnly: true},
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(names.CustodianHealthPort)}},
			InitialDelaySeconds: 1, PeriodSeconds: 2, FailureThreshold: 15,
		},
		Resources:       sized("50m", "64Mi", "64Mi"),
		SecurityContext: readOnlyRoot(hardened()),
	}
}

// custodianVolumes are the files of the Instance Harness's Custodian. Its token stands in jr2-instance, of which it sees that one key.
func custodianVolumes() []corev1.Volume {
	return []corev1.Volume{
		{Name: "custodian-values", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: ptr(int32(0o440)),
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: names.InstanceSecret},
				Items:                []corev1.KeyToPath{{Key: names.KeyHarnessToken, Path: names.SandboxTokenName}},
			}}},
		}}},
		configVolume("custodian-config", names.HeldConfig),
	}
}
