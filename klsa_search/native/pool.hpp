// A pool of buffers that threads reuse.
#pragma once

#include <array>
#include <atomic>
#include <memory>

namespace klsa {

// Objects that no thread uses now. It has no lock, so a fork cannot leave one locked.
template <class T>
class Pool {
  public:
    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() {
        for (auto& place : free_) delete place.load();
    }

    std::unique_ptr<T> take() {
        for (auto& place : free_)
            if (T* object = place.exchange(nullptr)) return std::unique_ptr<T>(object);
        return std::make_unique<T>();
    }
    void give(std::unique_ptr<T> object) {
        for (auto& place : free_) {
            T* none = nullptr;
            if (place.compare_exchange_strong(none, object.get())) {
                (void)object.release();
                return;
            }
        }
    }

  private:
    std::array<std::atomic<T*>, 64> free_{};
};

}  // namespace klsa
