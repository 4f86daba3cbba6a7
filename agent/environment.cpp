#include "agent/environment.hpp"

#include "hardware/procstat.hpp"

namespace kwatt::agent {

Result<Environment> open_environment(const Options& options) {
  auto sys = hardware::RootedFs::open(options.sysfs_root);
  if (!sys) return sys.error().with_context("cannot open the sysfs root");
  auto proc = hardware::RootedFs::open(options.proc_root);
  if (!proc) return proc.error().with_context("cannot open the proc root");
  auto boot_id = hardware::read_boot_id(*proc);
  if (!boot_id) return boot_id.error().with_context("cannot read the boot id");
  auto config = kube::find_config({.kubeconfig = options.kubeconfig,
                                   .context = {},
                                   .service_account_folder = kube::kServiceAccountFolder});
  if (!config) return config.error().with_context("no way to the API server");
  return Environment{std::move(*sys), std::move(*proc), std::move(*boot_id), std::move(*config)};
}

}  // namespace kwatt::agent
