#include <doctest/doctest.h>

#include "reconcilers/cluster_view.hpp"

using namespace kwatt;

namespace {

using Pointer = std::shared_ptr<const api::NodePower>;

Pointer version(const std::string& text) {
  auto object = std::make_shared<api::NodePower>();
  object->meta.resource_version = text;
  return object;
}

std::string shown(reconcilers::WriteOverlay<api::NodePower>& overlay, const Pointer& cached) {
  const Pointer object = overlay.overlay("n1", cached);
  return object == nullptr ? "nothing" : object->meta.resource_version;
}

}  // namespace

TEST_CASE("overlay: our write counts until the cache shows it, or what came after") {
  reconcilers::WriteOverlay<api::NodePower> overlay;
  overlay.wrote("n1", "1", version("2"));
  CHECK(shown(overlay, version("1")) == "2");
  CHECK(shown(overlay, version("2")) == "2");
  CHECK(shown(overlay, version("3")) == "3");
}

TEST_CASE("overlay: of several writes that a slow cache has not seen the last counts") {
  reconcilers::WriteOverlay<api::NodePower> overlay;
  overlay.wrote("n1", "1", version("2"));
  overlay.wrote("n1", "2", version("3"));
  CHECK(shown(overlay, version("1")) == "3");
  overlay.wrote("n1", "3", version("4"));
  CHECK(shown(overlay, version("2")) == "4");
  CHECK(shown(overlay, version("1")) == "4");
  // Somebody else has written since.
  CHECK(shown(overlay, version("9")) == "9");
  CHECK(shown(overlay, version("1")) == "1");
}

TEST_CASE("overlay: what we created and changed at once is there before the cache has it") {
  reconcilers::WriteOverlay<api::NodePower> overlay;
  overlay.wrote("n1", "", version("1"));
  overlay.wrote("n1", "1", version("2"));
  CHECK(shown(overlay, nullptr) == "2");
  CHECK(shown(overlay, version("2")) == "2");
  CHECK(shown(overlay, nullptr) == "nothing");
}

TEST_CASE("overlay: a write made from another's version leaves the earlier ones behind") {
  reconcilers::WriteOverlay<api::NodePower> overlay;
  overlay.wrote("n1", "1", version("2"));
  overlay.wrote("n1", "5", version("6"));
  CHECK(shown(overlay, version("5")) == "6");
}
