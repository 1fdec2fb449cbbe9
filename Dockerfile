# klsa-search as a service. Build and run from the root of the repository:
#   docker build -t klsa-search .
#   docker run -v klsa-index:/data/index klsa-search klsa-keys add web --scope search --scope write
#   docker run -p 127.0.0.1:8000:8000 -v klsa-index:/data/index klsa-search
# To try it with a sample index and without keys:
#   docker run -p 127.0.0.1:8000:8000 -e KLSA_ALLOW_NO_KEYS=yes klsa-search sample
# For the machines of a cluster (docs/guides/cluster.md):
#   docker build --build-arg EXTRAS=cluster -t klsa-search:cluster .
# docker/entrypoint.sh describes the arguments of the container.

# The full image has a compiler, for the extension module and for dependencies without a wheel.
FROM python:3.11.13-bookworm@sha256:e75be128195ec5b78912d55646e87d4638fc95234302a34472aeb2a474334cb1 AS build
RUN python -m venv /opt/klsa
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY requirements/run.txt ./requirements/run.txt
RUN /opt/klsa/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --require-hashes -r requirements/run.txt
COPY build_backend.py setup.py ./
COPY klsa_search ./klsa_search
# Further extras of pyproject.toml, separated by commas; their dependencies are not locked.
ARG EXTRAS=
RUN /opt/klsa/bin/pip install --no-cache-dir --disable-pip-version-check ".[eval${EXTRAS:+,$EXTRAS}]"

FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1
LABEL org.opencontainers.image.title="klsa-search" \
      org.opencontainers.image.description="Search with Kernel Latent Semantic Analysis" \
      org.opencontainers.image.licenses="MIT"
# A fixed number, so that the owner of a volume is the same in all images.
RUN groupadd --gid 10001 klsa \
 && useradd --uid 10001 --gid klsa --create-home --shell /usr/sbin/nologin klsa \
 && install --directory --owner=klsa --group=klsa /data /data/index
COPY --from=build /opt/klsa /opt/klsa
COPY --chmod=755 docker/entrypoint.sh docker/healthcheck.py /usr/local/bin/

ENV PATH=/opt/klsa/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    KLSA_HOME=/data/index \
    KLSA_HOST=0.0.0.0 \
    KLSA_PORT=8000
WORKDIR /data
USER 10001:10001
VOLUME /data/index
EXPOSE 8000
# The first start may build a sample.
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m --retries=3 \
    CMD ["python", "/usr/local/bin/healthcheck.py"]
ENTRYPOINT ["/usr/local/bin/entrypoint.sh"]
CMD ["serve"]
